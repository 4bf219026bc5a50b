--
-- PostgreSQL database dump
--


-- Dumped from database version 15.18 (Debian 15.18-0+deb12u1)
-- Dumped by pg_dump version 15.18 (Debian 15.18-0+deb12u1)

SET statement_timeout = 0;
SET lock_timeout = 0;
SET idle_in_transaction_session_timeout = 0;
SET client_encoding = 'UTF8';
SET standard_conforming_strings = on;
SELECT pg_catalog.set_config('search_path', '', false);
SET check_function_bodies = false;
SET xmloption = content;
SET client_min_messages = warning;
SET row_security = off;

--
-- Name: sitr; Type: SCHEMA; Schema: -; Owner: -
--

CREATE SCHEMA sitr;


SET default_tablespace = '';

SET default_table_access_method = heap;

--
-- Name: entry; Type: TABLE; Schema: sitr; Owner: -
--

CREATE TABLE sitr.entry (
    seq bigint NOT NULL,
    at text NOT NULL,
    kind text NOT NULL,
    operation text,
    analyst text,
    body text NOT NULL,
    hash text NOT NULL
);


--
-- Name: append_entry(text, text, text, text); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.append_entry(p_kind text, p_operation text, p_analyst text, p_body text) RETURNS sitr.entry
    LANGUAGE plpgsql
    AS $$
DECLARE
    before record;
    made sitr.entry;
BEGIN
    SELECT b.id, e.seq, e.hash INTO STRICT before
    FROM sitr.book AS b LEFT JOIN LATERAL (SELECT seq, hash FROM sitr.entry ORDER BY seq DESC LIMIT 1) AS e ON true;
    made.seq := coalesce(before.seq, 0) + 1;
    made.at := pg_catalog.to_char(
        pg_catalog.clock_timestamp() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"+00:00"');
    made.kind := p_kind;
    made.operation := p_operation;
    made.analyst := p_analyst;
    made.body := p_body;
    made.hash := pg_catalog.encode(pg_catalog.sha256(pg_catalog.convert_to(pg_catalog.concat_ws(E'\n',
        before.id, coalesce(before.hash, pg_catalog.repeat('0', 64)), made.seq::text, made.at, made.kind,
        coalesce(made.operation, ''), coalesce(made.analyst, ''), made.body), 'UTF8')), 'hex');
    INSERT INTO sitr.entry (seq, at, kind, operation, analyst, body, hash)
    VALUES (made.seq, made.at, made.kind, made.operation, made.analyst, made.body, made.hash);
    RETURN made;
END $$;


--
-- Name: budget; Type: TABLE; Schema: sitr; Owner: -
--

CREATE TABLE sitr.budget (
    name text NOT NULL,
    version integer NOT NULL,
    body text NOT NULL,
    cost bigint NOT NULL,
    delta bigint NOT NULL,
    peak_cost bigint NOT NULL,
    peak_delta bigint NOT NULL,
    CONSTRAINT budget_cost_check CHECK ((cost >= 0)),
    CONSTRAINT budget_delta_check CHECK ((delta >= 0)),
    CONSTRAINT budget_peak_cost_check CHECK ((peak_cost >= 0)),
    CONSTRAINT budget_peak_delta_check CHECK ((peak_delta >= 0))
);


--
-- Name: charged(sitr.budget, json, text[]); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.charged(p_budget sitr.budget, p_due json, p_blocks text[]) RETURNS boolean
    LANGUAGE plpgsql
    AS $$
DECLARE
    most CONSTANT bigint := 1152921504607895552;  -- 2^60 + 2^20 units (decision 0006)
    due_cost bigint := sitr.whole(p_due -> 'cost');
    due_delta bigint := sitr.whole(p_due -> 'delta');
    rules jsonb := p_budget.body::jsonb;
    apart boolean := p_blocks <> '{}' AND rules ?| ARRAY['disjoint_by', 'per'] AND rules ->> 'adjacency' = 'add_remove';
    used_cost bigint := 0;
    used_delta bigint := 0;
    more_cost bigint := due_cost;
    more_delta bigint := due_delta;
    peak_c bigint := 0;
    peak_d bigint := 0;
BEGIN
    IF sitr.whole(p_due -> 'version') IS DISTINCT FROM p_budget.version THEN
        RAISE EXCEPTION USING ERRCODE = 'SL002', MESSAGE = p_budget.name;
    ELSIF due_cost + due_delta = 0 THEN
        RAISE EXCEPTION USING ERRCODE = 'SL005', MESSAGE = 'a charge is more than nothing';
    END IF;
    IF apart THEN
        SELECT coalesce(max(cost), 0), coalesce(max(delta), 0) INTO used_cost, used_delta
        FROM sitr.block WHERE budget = p_budget.name AND block = ANY (p_blocks);
        peak_c := used_cost + due_cost;
        peak_d := used_delta + due_delta;
        more_cost := 0;
        more_delta := 0;
    END IF;
    UPDATE sitr.budget AS b
    SET cost = b.cost + more_cost, delta = b.delta + more_delta,
        peak_cost = greatest(b.peak_cost, peak_c), peak_delta = greatest(b.peak_delta, peak_d)
    WHERE b.name = p_budget.name AND b.version = p_budget.version
        AND b.cost + more_cost + greatest(b.peak_cost, peak_c) <= most
        AND b.delta + more_delta + greatest(b.peak_delta, peak_d) <= most;
    IF NOT FOUND THEN
        IF NOT apart THEN
            used_cost := p_budget.peak_cost;
            used_delta := p_budget.peak_delta;
        END IF;
        RAISE EXCEPTION USING ERRCODE = 'SL001', MESSAGE = p_budget.name,
            DETAIL = format('%s %s', p_budget.cost + used_cost, p_budget.delta + used_delta);
    END IF;
    IF apart THEN
        INSERT INTO sitr.block AS b (budget, block, cost, delta)
        SELECT p_budget.name, named, due_cost, due_delta FROM unnest(p_blocks) AS named
        ON CONFLICT (budget, block) DO UPDATE SET cost = b.cost + due_cost, delta = b.delta + due_delta;
    END IF;
    RETURN true;
END $$;


--
-- Name: checked(text, text, text); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.checked(p_operation text, p_analyst text, p_body text) RETURNS jsonb
    LANGUAGE plpgsql
    AS $_$
DECLARE
    body jsonb := p_body::jsonb;
    setting text;
BEGIN
    IF p_analyst IS DISTINCT FROM session_user::text AND (p_analyst IS NULL OR NOT sitr.is_owner()) THEN
        RAISE EXCEPTION USING ERRCODE = 'SL004', MESSAGE = 'an analyst asks under the name of the login';
    ELSIF coalesce(p_operation, '') = '' OR octet_length(p_operation) > 200 OR octet_length(p_analyst) > 200
        OR p_operation || p_analyst ~ '[[:cntrl:]]' OR p_body ~ '[\n\r]' OR jsonb_typeof(body) IS DISTINCT FROM 'object'
        OR jsonb_path_exists(body, '$.**{50}')  -- deeper than other readers go, as are these
        OR octet_length(p_body) > 1048576 OR p_body ~ '[0-9]{250}'
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL005', MESSAGE = 'a name is empty, too long or does not show, or the body no object';
    END IF;
    setting := set_config('synchronous_commit', 'on', true);  -- whatever the session says
    RETURN body;
END $_$;


--
-- Name: commit(text, text, text, text, text, bytea, text); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.commit(p_operation text, p_analyst text, p_holder text, p_body text, p_media text, p_content bytea, p_path text) RETURNS sitr.entry
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    asked jsonb := sitr.checked(p_operation, p_analyst, p_body);
BEGIN
    PERFORM FROM sitr.book FOR UPDATE;
    IF ARRAY(
        SELECT concat_ws(' ', kind, analyst, CASE kind WHEN 'start' THEN body::jsonb ->> 'holder' END)
        FROM sitr.entry WHERE operation = p_operation ORDER BY seq
    ) <> ARRAY['reserve ' || p_analyst, concat_ws(' ', 'start', p_analyst, encode(sha256(convert_to(p_holder, 'UTF8')), 'hex'))]
        OR p_holder IS NULL OR asked ->> 'holder' IS DISTINCT FROM p_holder
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL003', MESSAGE = 'the operation was not started by this holder';
    ELSIF (asked - ARRAY['bytes', 'holder', 'media', 'sha256'] = '{}'
        AND jsonb_typeof(asked -> 'sha256') = 'string' AND asked ->> 'sha256' ~ '^[0-9a-f]{64}$'
        AND jsonb_typeof(asked -> 'bytes') = 'number' AND p_body::json ->> 'bytes' ~ '^[0-9]{1,18}$'
        AND asked -> 'media' = to_jsonb(p_media) AND (p_content IS NULL) <> (p_path IS NULL)
        AND coalesce(octet_length(p_path), 0) <= 1000 AND coalesce(p_path, '') !~ '[[:cntrl:]]'
        AND (p_content IS NULL OR encode(sha256(p_content), 'hex') = asked ->> 'sha256'
             AND octet_length(p_content) = (asked ->> 'bytes')::bigint)) IS NOT TRUE
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL005', MESSAGE = 'the answer is not the one that its entry describes';
    END IF;
    INSERT INTO sitr.answer (operation, media, content, path) VALUES (p_operation, p_media, p_content, p_path);
    RETURN sitr.append_entry('commit', p_operation, p_analyst, p_body);
END $_$;


--
-- Name: identity(); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.identity(OUT id text, OUT schema_version integer, OUT seq bigint, OUT hash text) RETURNS record
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT b.id, b.schema_version, e.seq, e.hash
    FROM sitr.book AS b, (SELECT * FROM sitr.entry ORDER BY seq DESC LIMIT 1) AS e
$$;


--
-- Name: is_owner(); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.is_owner() RETURNS boolean
    LANGUAGE sql STABLE
    AS $$
    SELECT pg_catalog.pg_has_role(session_user, relowner, 'MEMBER')
    FROM pg_catalog.pg_class WHERE oid = 'sitr.book'::pg_catalog.regclass
$$;


--
-- Name: answer; Type: TABLE; Schema: sitr; Owner: -
--

CREATE TABLE sitr.answer (
    operation text NOT NULL,
    media text NOT NULL,
    content bytea,
    path text,
    CONSTRAINT somewhere CHECK (((content IS NULL) <> (path IS NULL)))
);


--
-- Name: kept(text, text); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.kept(p_operation text, p_analyst text) RETURNS SETOF sitr.answer
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT a.* FROM sitr.answer AS a JOIN sitr.entry AS e ON e.operation = a.operation AND e.kind = 'reserve'
    WHERE a.operation = p_operation AND e.analyst = p_analyst AND (p_analyst = session_user OR sitr.is_owner())
$$;


--
-- Name: only_added_to(); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.only_added_to() RETURNS trigger
    LANGUAGE plpgsql
    AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'SL004', MESSAGE = 'a book is only added to';
END $$;


--
-- Name: operation(text); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.operation(p_operation text) RETURNS SETOF sitr.entry
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT seq, at, kind, operation, analyst, CASE WHEN mine THEN body ELSE '{}' END, CASE WHEN mine THEN hash ELSE '' END
    FROM (SELECT *, analyst = session_user OR sitr.is_owner() AS mine FROM sitr.entry WHERE operation = p_operation) AS e
    ORDER BY seq
$$;


--
-- Name: reserve(text, text, text); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.reserve(p_operation text, p_analyst text, p_body text) RETURNS sitr.entry
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
DECLARE
    parts CONSTANT text[] := ARRAY['blocks', 'budgets', 'datasets', 'event', 'purpose', 'request'];
    asked jsonb := sitr.checked(p_operation, p_analyst, p_body);
    due json := p_body::json -> 'budgets';
    datasets text[] := ARRAY(SELECT DISTINCT jsonb_array_elements_text(asked -> 'datasets'));
    blocks text[] := '{}';
    kind text := NULL;
    rules jsonb;
    found sitr.budget;
    charged boolean := false;
    budgets integer := 0;
    wholes integer := 0;
BEGIN
    IF jsonb_array_length(asked -> 'blocks') > 0 THEN
        blocks := ARRAY(SELECT DISTINCT jsonb_array_elements_text(asked -> 'blocks'));
    END IF;
    -- The form that the ledger writes: what it could not read would spoil the book for everyone. Lists of text in which
    -- nothing stands twice are those that their elements, as text, make up again.
    IF (asked ?& parts AND asked - parts = '{}' AND jsonb_typeof(asked -> 'event') = 'object'
        AND jsonb_typeof(asked -> 'request') = 'string' AND jsonb_typeof(asked -> 'purpose') IN ('string', 'null')
        AND json_typeof(due) = 'object' AND jsonb_typeof(asked -> 'blocks') = 'array'
        AND jsonb_array_length(asked -> 'datasets') = cardinality(datasets) AND asked -> 'datasets' @> to_jsonb(datasets)
        AND jsonb_array_length(asked -> 'blocks') = cardinality(blocks) AND asked -> 'blocks' @> to_jsonb(blocks)
        AND array_position(datasets, NULL) IS NULL AND array_position(blocks, NULL) IS NULL
        AND array_to_string(datasets, '') !~ '/'
        AND array_to_string(datasets || blocks, '') || coalesce(asked ->> 'purpose', '') !~ '[[:cntrl:]]') IS NOT TRUE
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL005', MESSAGE = 'the request is not of the form that a ledger writes';
    END IF;
    PERFORM FROM sitr.book FOR UPDATE;  -- the lock of the book: steps come one after the other
    FOR found IN
        SELECT b.* FROM sitr.budget AS b
        WHERE b.name = ANY (ARRAY(
            SELECT d || share
            FROM unnest(datasets) AS d, unnest(ARRAY['', '/analyst/' || p_analyst, '/purpose/' || (asked ->> 'purpose')]) AS share
            WHERE share IS NOT NULL))
        ORDER BY b.name COLLATE "C"
    LOOP
        rules := found.body::jsonb;
        IF rules ->> 'adjacency' = 'add_remove' THEN  -- only then do blocks count apart
            IF blocks <> '{}' AND kind <> coalesce(rules ->> 'disjoint_by', rules ->> 'per') THEN
                RAISE EXCEPTION USING ERRCODE = 'SL005', MESSAGE = 'blocks of two kinds in one release';
            END IF;
            kind := coalesce(rules ->> 'disjoint_by', rules ->> 'per', kind);
        END IF;
        charged := asked -> 'budgets' ? found.name AND sitr.charged(found, due -> found.name, blocks);
        EXIT WHEN NOT charged;
        budgets := budgets + 1;
        wholes := wholes + (found.name = ANY (datasets))::integer;
    END LOOP;
    -- Every budget that it falls under is charged, and no other: nobody leaves out a share of their own.
    IF (charged AND wholes = cardinality(datasets)
        AND budgets = (SELECT count(*) FROM jsonb_object_keys(asked -> 'budgets'))) IS NOT TRUE
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL002', MESSAGE = 'the budgets are not those that are charged';
    END IF;
    RETURN sitr.append_entry('reserve', p_operation, p_analyst, p_body);
END $$;


--
-- Name: start(text, text, text); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.start(p_operation text, p_analyst text, p_body text) RETURNS sitr.entry
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
DECLARE
    asked jsonb := sitr.checked(p_operation, p_analyst, p_body);
BEGIN
    IF (asked ->> 'holder' ~ '^[0-9a-f]{64}$' AND jsonb_typeof(asked -> 'holder') = 'string' AND asked - 'holder' = '{}')
        IS NOT TRUE
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL005', MESSAGE = 'the holder is no sha256';
    END IF;
    PERFORM FROM sitr.book FOR UPDATE;
    IF ARRAY(SELECT kind || ' ' || analyst FROM sitr.entry WHERE operation = p_operation ORDER BY seq)
        <> ARRAY['reserve ' || p_analyst]
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL003', MESSAGE = 'the operation is not reserved';
    END IF;
    RETURN sitr.append_entry('start', p_operation, p_analyst, p_body);
END $_$;


--
-- Name: totals(text[]); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.totals(p_names text[]) RETURNS SETOF sitr.budget
    LANGUAGE sql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
    SELECT * FROM sitr.budget
    WHERE name = ANY (p_names)
        AND (split_part(name, '/', 2) <> 'analyst' OR name = split_part(name, '/', 1) || '/analyst/' || session_user
             OR sitr.is_owner())
    ORDER BY name COLLATE "C"
$$;


--
-- Name: whole(json); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.whole(p_number json) RETURNS bigint
    LANGUAGE plpgsql IMMUTABLE
    AS $_$
BEGIN
    IF p_number IS NULL OR p_number::text !~ '^[0-9]{1,19}$' THEN
        RAISE EXCEPTION USING ERRCODE = 'SL005', MESSAGE = 'a charge is a whole number';
    END IF;
    RETURN p_number::text::bigint;
END $_$;


--
-- Name: block; Type: TABLE; Schema: sitr; Owner: -
--

CREATE TABLE sitr.block (
    budget text NOT NULL,
    block text NOT NULL,
    cost bigint NOT NULL,
    delta bigint NOT NULL,
    CONSTRAINT block_cost_check CHECK ((cost >= 0)),
    CONSTRAINT block_delta_check CHECK ((delta >= 0))
);


--
-- Name: book; Type: TABLE; Schema: sitr; Owner: -
--

CREATE TABLE sitr.book (
    id text NOT NULL,
    schema_version integer NOT NULL
);


--
-- Data for Name: answer; Type: TABLE DATA; Schema: sitr; Owner: -
--

COPY sitr.answer (operation, media, content, path) FROM stdin;
q-1	application/json	\\x7b226e223a34317d	\N
q-2	text/plain	\\x6e6f697379	\N
\.


--
-- Data for Name: block; Type: TABLE DATA; Schema: sitr; Owner: -
--

COPY sitr.block (budget, block, cost, delta) FROM stdin;
clinic	north	144115188075855872	0
clinic/analyst/amina	north	288230376151711744	0
\.


--
-- Data for Name: book; Type: TABLE DATA; Schema: sitr; Owner: -
--

COPY sitr.book (id, schema_version) FROM stdin;
c07ef9375f7e472684abfc70a1476869	1
\.


--
-- Data for Name: budget; Type: TABLE DATA; Schema: sitr; Owner: -
--

COPY sitr.budget (name, version, body, cost, delta, peak_cost, peak_delta) FROM stdin;
school	1	{"adjacency":"add_remove","filter":{"delta":0.0,"rho":0.5,"type":"zcdp"},"rho":0.5,"unit":"person"}	2882303761517118	0	0	0
clinic/analyst/amina	1	{"adjacency":"add_remove","disjoint_by":"ward","epsilon":1.0,"filter":{"delta":0.0,"epsilon":1.0,"type":"pure"},"unit":"person"}	144115188075855872	0	288230376151711744	0
clinic	1	{"adjacency":"add_remove","disjoint_by":"ward","epsilon":2.0,"filter":{"delta":0.0,"epsilon":2.0,"type":"pure"},"unit":"person"}	72057594037927936	0	144115188075855872	0
tax	2	{"adjacency":"add_remove","delta":1e-06,"epsilon":2.0,"filter":{"alpha":22.17748460295068,"delta":9.99999999998181e-08,"epsilon":1.5351343280228522,"type":"rdp"},"unit":"person"}	24031000872920915	0	0	0
\.


--
-- Data for Name: entry; Type: TABLE DATA; Schema: sitr; Owner: -
--

COPY sitr.entry (seq, at, kind, operation, analyst, body, hash) FROM stdin;
1	2026-11-16T10:52:28.804534+00:00	open	\N	\N	{"sitr":"0.1.0"}	c573f96c897c09f020c9865dbbe78b5f82b8c70e09115ee07628ed1294e85b8d
2	2026-11-16T10:52:28.834300+00:00	budget	\N	\N	{"definition":"{\\"adjacency\\":\\"add_remove\\",\\"disjoint_by\\":\\"ward\\",\\"epsilon\\":2.0,\\"filter\\":{\\"delta\\":0.0,\\"epsilon\\":2.0,\\"type\\":\\"pure\\"},\\"unit\\":\\"person\\"}","name":"clinic"}	2b2a3f45817755a98767f636d60afe743d2b57e07bf5dd40d6407c16796c5670
3	2026-11-16T10:52:28.866488+00:00	budget	\N	\N	{"definition":"{\\"adjacency\\":\\"add_remove\\",\\"disjoint_by\\":\\"ward\\",\\"epsilon\\":1.0,\\"filter\\":{\\"delta\\":0.0,\\"epsilon\\":1.0,\\"type\\":\\"pure\\"},\\"unit\\":\\"person\\"}","name":"clinic/analyst/amina"}	b8fb697456627d3e505868b4db5a0e921ecd67d17e8160dab5ad1724de0dfc65
4	2026-11-16T10:52:28.894458+00:00	budget	\N	\N	{"definition":"{\\"adjacency\\":\\"add_remove\\",\\"delta\\":1e-06,\\"epsilon\\":1.0,\\"filter\\":{\\"alpha\\":22.17748460295068,\\"delta\\":9.99999999998181e-08,\\"epsilon\\":0.5351343280264903,\\"type\\":\\"rdp\\"},\\"unit\\":\\"person\\"}","name":"tax"}	4993d7dd46feb3b4a618761b7000c5eb2d825d150be916fbb01b4d4198bbfe52
5	2026-11-16T10:52:28.917271+00:00	budget	\N	\N	{"definition":"{\\"adjacency\\":\\"add_remove\\",\\"filter\\":{\\"delta\\":0.0,\\"rho\\":0.5,\\"type\\":\\"zcdp\\"},\\"rho\\":0.5,\\"unit\\":\\"person\\"}","name":"school"}	f79e8bf1a4aa55ef2bb87e584c9aef13bdbd7a428ceff0abc556fa38fc7e00f6
6	2026-11-16T10:52:28.937324+00:00	reserve	q-1	amina	{"blocks":["north"],"budgets":{"clinic":{"cost":144115188075855872,"delta":0,"version":1},"clinic/analyst/amina":{"cost":288230376151711744,"delta":0,"version":1}},"datasets":["clinic"],"event":{"noise_multiplier":4.0,"schema_version":1,"type":"laplace"},"purpose":null,"request":"2cad9b9e5050f7fed7422ec29d34645375118dfd7a8dcdce6d6526b1b41d0fbe"}	6fcacf77c0db881b8378788c05b3d36937fbb059b82a582e9eab8577442ebee6
7	2026-11-16T10:52:28.949190+00:00	start	q-1	amina	{"holder":"4f599d2a1d36ea110f98d4115cd1bbe38b032e460785af80958b169bca71fc57"}	9e00c69879d5ceafd5a298f95dcfb2b90fd6704b71d1deee8d8029a0f8312fa5
8	2026-11-16T10:52:28.957444+00:00	commit	q-1	amina	{"bytes":8,"holder":"22a428a740dc2654ee5dc0f563b35175","media":"application/json","sha256":"e33d8bf7f55a93deaf57c09fffbf57cb762322df37eac1118ba33c20c71faa30"}	2a721f67b5e155eadc04bc864cb44a515b387514745db1e2282b901374101ee9
9	2026-11-16T10:52:28.965998+00:00	reserve	q-2	badr	{"blocks":[],"budgets":{"school":{"cost":2882303761517118,"delta":0,"version":1},"tax":{"cost":59725422145697683,"delta":0,"version":1}},"datasets":["school","tax"],"event":{"noise_multiplier":20.0,"schema_version":1,"type":"gaussian"},"purpose":"report","request":"f369a692a97f3d533d13ace8da632820f50217d63e7048cad7a23bb88c4839e7"}	2280b50cff673c5a9d0579d116281e7dc19f4dee7e7b72f57f2980db55dd7188
10	2026-11-16T10:52:28.972340+00:00	start	q-2	badr	{"holder":"febc11ed0c2350788f26a604dd0c474aa22b96f78119ad7a878366fff38db914"}	c3d949bb8e10ccff02ce7bb8b35bb197a10146dd2ac952069e9775600c904611
11	2026-11-16T10:52:28.976617+00:00	commit	q-2	badr	{"bytes":5,"holder":"2f1f51097a2a5b6e4d30c09df1fab062","media":"text/plain","sha256":"acd6beff7c3430bfed5d69f86c5c9e6a32ad2a27a2c2a1e8763ce08f6c3da5ec"}	c5f333c21ebfc8bf6d363a5c2c34e74b22003f6e0e7c1096caf3d158bbd4e65f
12	2026-11-16T10:52:28.991152+00:00	raise	\N	\N	{"definition":"{\\"adjacency\\":\\"add_remove\\",\\"delta\\":1e-06,\\"epsilon\\":2.0,\\"filter\\":{\\"alpha\\":22.17748460295068,\\"delta\\":9.99999999998181e-08,\\"epsilon\\":1.5351343280228522,\\"type\\":\\"rdp\\"},\\"unit\\":\\"person\\"}","name":"tax","reason":"second year"}	d11bc71c557f7e3482ba02663aa83ea5dd1d9418896b8a65ef0285f270b41854
13	2026-11-16T10:52:28.997376+00:00	reserve	q-3	amina	{"blocks":[],"budgets":{"clinic":{"cost":72057594037927936,"delta":0,"version":1},"clinic/analyst/amina":{"cost":144115188075855872,"delta":0,"version":1}},"datasets":["clinic"],"event":{"epsilon":0.125,"schema_version":1,"type":"pure_dp"},"purpose":null,"request":"0d26b748f6fd5ff44806438c5732a707a09f57f7374f901b87b685d62b7cedf9"}	c36626a22ffc18532391e5e86ac9cf26e26d13c968a67e5c34a74c84591e0d92
14	2026-11-16T10:52:29.000551+00:00	reserve	q-4	badr	{"blocks":[],"budgets":{"clinic":{"cost":144115188075855872,"delta":0,"version":1}},"datasets":["clinic"],"event":{"epsilon":0.25,"schema_version":1,"type":"pure_dp"},"purpose":null,"request":"19ae2acab3e6b69b464fab733581b713155082137b11b840e7affa6685b2ec97"}	93f58e591f3335f6d8b787285848511a59b49847bb6f652429a5f3da0f4d174e
15	2026-11-16T10:52:29.038546+00:00	refund	q-4	badr	{"reason":"never ran"}	74b0bdbb99b137c035e18a0c1b18a42f96c8b59130ae40a219447c1115f19655
16	2026-11-16T10:52:29.051782+00:00	reserve	q-5	badr	{"blocks":[],"budgets":{"tax":{"cost":3211243889699695,"delta":0,"version":2}},"datasets":["tax"],"event":{"noise_multiplier":50.0,"schema_version":1,"type":"laplace"},"purpose":null,"request":"4cd64a718e43610b91df2e2c92d9eeb72a79b49f5b7b0d33a973d65ed2286480"}	e5aa116cb5740f3fb82caeca70c3852772d6c76ff0744059a1013108c0d78636
17	2026-11-16T10:52:29.054823+00:00	start	q-5	badr	{"holder":"53c5e6df96afce3da1c2c3c624163e13ab9ae33a4391cdcdbeb149a3d7121364"}	0b7df8befc9afd83f47157b8113e2d18566e343203a6a82f0cf05d253711e850
\.


--
-- Name: answer answer_pkey; Type: CONSTRAINT; Schema: sitr; Owner: -
--

ALTER TABLE ONLY sitr.answer
    ADD CONSTRAINT answer_pkey PRIMARY KEY (operation);


--
-- Name: block block_pkey; Type: CONSTRAINT; Schema: sitr; Owner: -
--

ALTER TABLE ONLY sitr.block
    ADD CONSTRAINT block_pkey PRIMARY KEY (budget, block);


--
-- Name: book book_pkey; Type: CONSTRAINT; Schema: sitr; Owner: -
--

ALTER TABLE ONLY sitr.book
    ADD CONSTRAINT book_pkey PRIMARY KEY (id);


--
-- Name: budget budget_pkey; Type: CONSTRAINT; Schema: sitr; Owner: -
--

ALTER TABLE ONLY sitr.budget
    ADD CONSTRAINT budget_pkey PRIMARY KEY (name);


--
-- Name: entry entry_pkey; Type: CONSTRAINT; Schema: sitr; Owner: -
--

ALTER TABLE ONLY sitr.entry
    ADD CONSTRAINT entry_pkey PRIMARY KEY (seq);


--
-- Name: entry once; Type: CONSTRAINT; Schema: sitr; Owner: -
--

ALTER TABLE ONLY sitr.entry
    ADD CONSTRAINT once UNIQUE (operation, kind);


--
-- Name: answer only_added_to; Type: TRIGGER; Schema: sitr; Owner: -
--

CREATE TRIGGER only_added_to BEFORE DELETE OR UPDATE OR TRUNCATE ON sitr.answer FOR EACH STATEMENT EXECUTE FUNCTION sitr.only_added_to();


--
-- Name: entry only_added_to; Type: TRIGGER; Schema: sitr; Owner: -
--

CREATE TRIGGER only_added_to BEFORE DELETE OR UPDATE OR TRUNCATE ON sitr.entry FOR EACH STATEMENT EXECUTE FUNCTION sitr.only_added_to();


--
-- Name: block block_budget_fkey; Type: FK CONSTRAINT; Schema: sitr; Owner: -
--

ALTER TABLE ONLY sitr.block
    ADD CONSTRAINT block_budget_fkey FOREIGN KEY (budget) REFERENCES sitr.budget(name);


--
-- PostgreSQL database dump complete
--


