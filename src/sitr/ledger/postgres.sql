-- The steps of the protocol, as functions that run with the rights of the book's owner. Analysts may execute the ones
-- that `FOR_ANALYSTS` in postgres.py names, and hold no right on any table. A charge stands once its transaction is committed.
--
-- Errors: SL001 a budget has not enough left (message: its name; detail: what was used, as JSON), SL002 a budget changed since it
-- was read, SL003 the operation is in another state, SL004 not permitted, SL005 the request cannot be read.
--
-- <<Words>> in double brackets are limits that Python's side has as well; postgres.py fills them in.

CREATE OR REPLACE FUNCTION sitr.only_added_to() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    RAISE EXCEPTION USING ERRCODE = 'SL004', MESSAGE = 'a book is only added to';
END $$;

CREATE OR REPLACE TRIGGER only_added_to BEFORE UPDATE OR DELETE OR TRUNCATE ON sitr.entry
    FOR EACH STATEMENT EXECUTE FUNCTION sitr.only_added_to();
CREATE OR REPLACE TRIGGER only_added_to BEFORE UPDATE OR DELETE OR TRUNCATE ON sitr.answer
    FOR EACH STATEMENT EXECUTE FUNCTION sitr.only_added_to();

-- Whether whoever is logged in owns the book, and may act for others.
CREATE OR REPLACE FUNCTION sitr.is_owner() RETURNS boolean LANGUAGE sql STABLE AS $$
    SELECT pg_catalog.pg_has_role(session_user, relowner, 'MEMBER')
    FROM pg_catalog.pg_class WHERE oid = 'sitr.book'::pg_catalog.regclass
$$;

-- Whether something is a name as `_validate.name` has it: of one look only, so that no report can be misread.
CREATE OR REPLACE FUNCTION sitr.is_name(p_text text) RETURNS boolean LANGUAGE sql IMMUTABLE AS $$
    SELECT coalesce(p_text <> '' AND octet_length(p_text) <= 200 AND p_text !~ '^ | $|[<<unprintable>>]'
        AND p_text IS NFC NORMALIZED, false)
$$;

-- Refuses an analyst who claims to be another, names that could break a line of the chain, and what is no JSON object;
-- returns the body as it reads. Calls are assignments here, not PERFORM: those are planned as statements of their own.
CREATE OR REPLACE FUNCTION sitr.checked(p_operation text, p_analyst text, p_body text) RETURNS jsonb
LANGUAGE plpgsql AS $$
DECLARE
    body jsonb := p_body::jsonb;
    setting text;
BEGIN
    IF p_analyst IS DISTINCT FROM session_user::text AND (p_analyst IS NULL OR NOT sitr.is_owner()) THEN
        RAISE EXCEPTION USING ERRCODE = 'SL004', MESSAGE = 'an analyst asks under the name of the login';
    ELSIF NOT sitr.is_name(p_operation) OR NOT sitr.is_name(p_analyst)
        OR p_body ~ '[\n\r]' OR jsonb_typeof(body) IS DISTINCT FROM 'object'
        OR jsonb_path_exists(body, '$.**{<<deepest>>}')  -- deeper than other readers go, as are these
        OR octet_length(p_body) > <<body>> OR p_body ~ '[0-9]{<<number>>}'
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL005', MESSAGE = 'a name is empty, too long or does not show, or the body no object';
    END IF;
    setting := set_config('synchronous_commit', 'on', true);  -- whatever the session says
    RETURN body;
END $$;

-- Writes the next entry, in a transaction that holds the lock of the book: its row of sitr.book. Owners call it as well,
-- from sessions that may look into other schemas first: so functions are named with theirs.
CREATE OR REPLACE FUNCTION sitr.append_entry(p_kind text, p_operation text, p_analyst text, p_body text)
RETURNS sitr.entry LANGUAGE plpgsql AS $$
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

-- What a charge takes of each limit: whole numbers of any size, or null for what is dead for ever. Of json and not of
-- jsonb, for which 1e17 is a whole number too, and for other readers is not.
CREATE OR REPLACE FUNCTION sitr.units(p_units json) RETURNS numeric[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    IF p_units::text ~ '^\[\s*([0-9]+|null)(\s*,\s*([0-9]+|null))*\s*\]$' THEN
        RETURN translate(p_units::text, '[]', '{}')::numeric[];
    END IF;
    RAISE EXCEPTION USING ERRCODE = 'SL005', MESSAGE = 'a charge is a list of whole numbers';
END $$;

-- Totals place by place: what is null in either is null, dead for ever.
CREATE OR REPLACE FUNCTION sitr.plus(p_one numeric[], p_other numeric[]) RETURNS numeric[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    FOR place IN 1 .. cardinality(p_one) LOOP
        p_one[place] := p_one[place] + p_other[place];
    END LOOP;
    RETURN p_one;
END $$;

CREATE OR REPLACE FUNCTION sitr.peak(p_one numeric[], p_other numeric[]) RETURNS numeric[] LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
    FOR place IN 1 .. cardinality(p_one) LOOP
        p_one[place] := CASE WHEN p_one[place] >= p_other[place] THEN p_one[place] WHEN p_other[place] > p_one[place] THEN p_other[place] END;
    END LOOP;
    RETURN p_one;
END $$;

-- Whether a history that used so much is admissible: one way at least has all its places within their limits (THEORY 5.4).
CREATE OR REPLACE FUNCTION sitr.holds(p_used numeric[], p_ways jsonb) RETURNS boolean LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
    most CONSTANT numeric := 1152921504607895552;  -- 2^60 + 2^20 units (decision 0006)
    within boolean;
BEGIN
    FOR way IN 0 .. jsonb_array_length(p_ways) - 1 LOOP
        within := true;
        FOR place IN 0 .. jsonb_array_length(p_ways -> way) - 1 LOOP
            within := within AND coalesce(p_used[(p_ways -> way -> place)::integer + 1] <= most, false);
        END LOOP;
        IF within THEN
            RETURN true;
        END IF;
    END LOOP;
    RETURN false;
END $$;

-- Charges one budget: the conditional UPDATE changes its row only if the promise still holds after it.
CREATE OR REPLACE FUNCTION sitr.charged(p_budget sitr.budget, p_due json, p_blocks text[]) RETURNS boolean
LANGUAGE plpgsql AS $$
DECLARE
    due numeric[] := sitr.units(p_due -> 'units');
    nothing CONSTANT numeric[] := array_fill(0::numeric, ARRAY[cardinality(p_budget.whole)]);
    rules jsonb := p_budget.body::jsonb;
    ways CONSTANT jsonb := coalesce(rules -> 'filter' -> 'ways', '[[0, 1]]');
    apart boolean := p_blocks <> '{}' AND rules ?| ARRAY['disjoint_by', 'per'] AND rules ->> 'adjacency' = 'add_remove';
    new_whole numeric[] := p_budget.whole;
    spent numeric[] := p_budget.peak;  -- what the blocks that it touches spent before
    new_peak numeric[] := p_budget.peak;
    granted boolean := true;
    before numeric[];
BEGIN
    IF (p_due ->> 'version') IS DISTINCT FROM p_budget.version::text OR json_typeof(p_due -> 'version') <> 'number' THEN
        RAISE EXCEPTION USING ERRCODE = 'SL002', MESSAGE = p_budget.name;
    ELSIF cardinality(due) <> cardinality(nothing) OR due = nothing THEN
        RAISE EXCEPTION USING ERRCODE = 'SL005', MESSAGE = 'a charge is more than nothing, and has a number for each limit';
    END IF;
    IF apart THEN  -- each block needs a way of its own
        spent := nothing;
        FOR before IN
            SELECT coalesce(b.used, nothing) FROM unnest(p_blocks) AS named
            LEFT JOIN sitr.block AS b ON b.budget = p_budget.name AND b.block = named
        LOOP
            spent := sitr.peak(spent, before);
            before := sitr.plus(before, due);
            new_peak := sitr.peak(new_peak, before);
            granted := granted AND sitr.holds(sitr.plus(new_whole, before), ways);
        END LOOP;
    ELSE  -- one way for every block
        new_whole := sitr.plus(new_whole, due);
        granted := sitr.holds(sitr.plus(new_whole, new_peak), ways);
    END IF;
    UPDATE sitr.budget AS b SET whole = new_whole, peak = new_peak
    WHERE b.name = p_budget.name AND b.version = p_budget.version
        AND b.whole = p_budget.whole AND b.peak = p_budget.peak AND granted;
    IF NOT FOUND THEN
        RAISE EXCEPTION USING ERRCODE = CASE WHEN granted THEN 'SL002' ELSE 'SL001' END, MESSAGE = p_budget.name,
            DETAIL = to_json(sitr.plus(p_budget.whole, spent));
    END IF;
    IF apart THEN
        INSERT INTO sitr.block AS b (budget, block, used)
        SELECT p_budget.name, named, due FROM unnest(p_blocks) AS named
        ON CONFLICT (budget, block) DO UPDATE SET used = sitr.plus(b.used, due);
    END IF;
    RETURN true;
END $$;

CREATE OR REPLACE FUNCTION sitr.reserve(p_operation text, p_analyst text, p_body text) RETURNS sitr.entry
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    parts CONSTANT text[] := ARRAY['blocks', 'budgets', 'datasets', 'event', 'nonce', 'purpose', 'request'];
    asked jsonb := sitr.checked(p_operation, p_analyst, p_body);
    due json := p_body::json -> 'budgets';
    datasets text[] := ARRAY(SELECT DISTINCT jsonb_array_elements_text(asked -> 'datasets'));
    blocks text[] := '{}';
    kind text := NULL;
    rules jsonb;
    found sitr.budget;
    charged boolean := false;
    budgets text[] := '{}';
    wholes integer := 0;
    one text;
    named boolean := datasets <> '{}';
BEGIN
    IF jsonb_array_length(asked -> 'blocks') > 0 THEN
        blocks := ARRAY(SELECT DISTINCT jsonb_array_elements_text(asked -> 'blocks'));
    END IF;
    FOREACH one IN ARRAY datasets || blocks LOOP
        named := named AND sitr.is_name(one);
    END LOOP;
    -- The form that the ledger writes: what it could not read would spoil the book for everyone. Lists of text in which
    -- nothing stands twice are those that their elements, as text, make up again. The nonce keeps others from confirming
    -- by the hash of the entry what they guess that it says. What was asked, in words, is for people. No query stands in
    -- here: with one, the whole would be one.
    IF (named AND asked ?& parts AND asked - parts - 'asked' = '{}' AND jsonb_typeof(asked -> 'event') = 'object'
        AND coalesce(jsonb_typeof(asked -> 'asked'), 'object') = 'object'
        AND jsonb_typeof(asked -> 'request') = 'string' AND asked ->> 'request' ~ '^[0-9a-f]{64}$'
        AND jsonb_typeof(asked -> 'nonce') = 'string' AND asked ->> 'nonce' ~ '^[0-9a-f]{32}$'
        AND (asked -> 'purpose' = 'null' OR jsonb_typeof(asked -> 'purpose') = 'string' AND sitr.is_name(asked ->> 'purpose'))
        AND json_typeof(due) = 'object' AND jsonb_typeof(asked -> 'blocks') = 'array'
        AND jsonb_array_length(asked -> 'datasets') = cardinality(datasets) AND asked -> 'datasets' @> to_jsonb(datasets)
        AND jsonb_array_length(asked -> 'blocks') = cardinality(blocks) AND asked -> 'blocks' @> to_jsonb(blocks)
        AND array_position(datasets, NULL) IS NULL AND array_position(blocks, NULL) IS NULL
        AND array_to_string(datasets, '') !~ '/') IS NOT TRUE
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
        budgets := budgets || found.name;
        wholes := wholes + (found.name = ANY (datasets))::integer;
    END LOOP;
    -- Every budget that it falls under is charged, and no other: nobody leaves out a share of their own.
    IF (charged AND wholes = cardinality(datasets) AND (asked -> 'budgets') - budgets = '{}') IS NOT TRUE
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL002', MESSAGE = 'the budgets are not those that are charged';
    END IF;
    RETURN sitr.append_entry('reserve', p_operation, p_analyst, p_body);
END $$;

CREATE OR REPLACE FUNCTION sitr.start(p_operation text, p_analyst text, p_body text) RETURNS sitr.entry
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
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
END $$;

CREATE OR REPLACE FUNCTION sitr.commit(
    p_operation text, p_analyst text, p_holder text, p_body text, p_media text, p_content bytea, p_path text
) RETURNS sitr.entry
LANGUAGE plpgsql SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    asked jsonb := sitr.checked(p_operation, p_analyst, p_body);
BEGIN
    IF octet_length(p_content) > <<large>> OR p_body::json ->> 'bytes' !~ '^[0-9]{1,10}$' OR (asked ->> 'bytes')::bigint > <<largest>>
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL005', MESSAGE = 'an answer of more than <<large>> bytes belongs in a file, of at most <<largest>>';
    END IF;
    PERFORM FROM sitr.book FOR UPDATE;
    IF ARRAY(
        SELECT concat_ws(' ', kind, analyst, CASE kind WHEN 'start' THEN body::jsonb ->> 'holder' END)
        FROM sitr.entry WHERE operation = p_operation ORDER BY seq
    ) <> ARRAY['reserve ' || p_analyst, concat_ws(' ', 'start', p_analyst, encode(sha256(convert_to(p_holder, 'UTF8')), 'hex'))]
        OR p_holder IS NULL OR asked ->> 'holder' IS DISTINCT FROM p_holder
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL003', MESSAGE = 'the operation was not started by this holder';
    ELSIF (asked - ARRAY['bytes', 'holder', 'left', 'media', 'sha256'] = '{}'
        AND coalesce(jsonb_typeof(asked -> 'left'), 'object') = 'object'
        AND jsonb_typeof(asked -> 'holder') = 'string'
        AND jsonb_typeof(asked -> 'sha256') = 'string' AND asked ->> 'sha256' ~ '^[0-9a-f]{64}$'
        AND jsonb_typeof(asked -> 'bytes') = 'number'
        AND asked -> 'media' = to_jsonb(p_media) AND p_media IN (<<media>>)
        -- A file is named by what is in it, and nothing else: whoever reads the answer looks nowhere but there.
        AND (p_content IS NULL) <> (p_path IS NULL) AND coalesce(p_path = asked ->> 'sha256', true)
        AND (p_content IS NULL OR encode(sha256(p_content), 'hex') = asked ->> 'sha256'
             AND octet_length(p_content) = (asked ->> 'bytes')::bigint)) IS NOT TRUE
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL005', MESSAGE = 'the answer is not the one that its entry describes';
    END IF;
    INSERT INTO sitr.answer (operation, media, content, path) VALUES (p_operation, p_media, p_content, p_path);
    RETURN sitr.append_entry('commit', p_operation, p_analyst, p_body);
END $$;

-- What follows reads, in PL/pgSQL like the rest: it keeps the plans of its queries, where SQL would plan them at each call.
CREATE OR REPLACE FUNCTION sitr.identity(OUT id text, OUT schema_version integer, OUT seq bigint, OUT hash text)
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    SELECT b.id, b.schema_version, e.seq, e.hash INTO id, schema_version, seq, hash
    FROM sitr.book AS b, (SELECT * FROM sitr.entry AS last ORDER BY last.seq DESC LIMIT 1) AS e;
END $$;

-- Budgets by name, another analyst's share not among them.
CREATE OR REPLACE FUNCTION sitr.totals(p_names text[]) RETURNS SETOF sitr.budget
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM sitr.budget
    WHERE name = ANY (p_names)
        AND (split_part(name, '/', 2) <> 'analyst' OR name = split_part(name, '/', 1) || '/analyst/' || session_user
             OR sitr.is_owner())
    ORDER BY name COLLATE "C";
END $$;

-- The entries of an operation; of another's, only that they are there: a hash would let one guess what it is of.
CREATE OR REPLACE FUNCTION sitr.operation(p_operation text) RETURNS SETOF sitr.entry
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    SELECT seq, at, kind, operation, analyst, CASE WHEN mine THEN body ELSE '{}' END, CASE WHEN mine THEN hash ELSE '' END
    FROM (SELECT *, analyst = session_user OR sitr.is_owner() AS mine FROM sitr.entry WHERE operation = p_operation) AS e
    ORDER BY seq;
END $$;

-- A stored answer, to the analyst who asked for it.
CREATE OR REPLACE FUNCTION sitr.kept(p_operation text, p_analyst text) RETURNS SETOF sitr.answer
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY
    SELECT a.* FROM sitr.answer AS a JOIN sitr.entry AS e ON e.operation = a.operation AND e.kind = 'reserve'
    WHERE a.operation = p_operation AND e.analyst = p_analyst AND (p_analyst = session_user OR sitr.is_owner());
END $$;

-- The entries of all operations of whoever is logged in.
CREATE OR REPLACE FUNCTION sitr.mine() RETURNS SETOF sitr.entry
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN QUERY SELECT * FROM sitr.entry WHERE analyst = session_user ORDER BY seq;
END $$;

-- Entries of the terms of promises, by declaration or dataset; NULL: all of them, to an owner. Analysts, who hold the
-- declaration, compare it with digests: what else an entry says is its owner's.
CREATE OR REPLACE FUNCTION sitr.declared(p_declaration text, p_datasets text[]) RETURNS SETOF sitr.entry
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
DECLARE
    owner boolean := sitr.is_owner();
BEGIN
    RETURN QUERY
    SELECT e.seq, e.at, e.kind, e.operation, e.analyst,
        CASE WHEN owner THEN e.body ELSE jsonb_build_object('name', said -> 'name', 'declaration', said -> 'declaration',
            'version', said -> 'version', 'digests', said -> 'digests')::text END,
        CASE WHEN owner THEN e.hash ELSE '' END
    FROM (SELECT *, body::jsonb AS said FROM sitr.entry WHERE operation IS NULL AND kind = 'declare') AS e
    WHERE said ->> 'declaration' = p_declaration OR said ->> 'name' = ANY (p_datasets) OR p_declaration IS NULL AND owner
    ORDER BY e.seq;
END $$;

-- Whether there are terms of any promise; whose, an analyst is not told.
CREATE OR REPLACE FUNCTION sitr.has_terms() RETURNS boolean
LANGUAGE plpgsql STABLE SECURITY DEFINER SET search_path = pg_catalog, pg_temp AS $$
BEGIN
    RETURN EXISTS (SELECT FROM sitr.entry WHERE operation IS NULL AND kind = 'declare');
END $$;

REVOKE ALL ON ALL FUNCTIONS IN SCHEMA sitr FROM PUBLIC;

-- Who could ask by an earlier form may execute all that analysts may of this one.
DO $$
DECLARE
    analyst oid;
BEGIN
    FOR analyst IN
        SELECT acl.grantee FROM pg_catalog.pg_proc AS p, pg_catalog.aclexplode(p.proacl) AS acl
        WHERE p.oid = 'sitr.reserve(text, text, text)'::pg_catalog.regprocedure AND acl.grantee NOT IN (0, p.proowner)
    LOOP
        EXECUTE pg_catalog.format('GRANT EXECUTE ON FUNCTION <<functions>> TO %s', analyst::pg_catalog.regrole);
    END LOOP;
END $$;
