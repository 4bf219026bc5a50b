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
    ELSIF NOT sitr.is_name(p_operation) OR NOT sitr.is_name(p_analyst)
        OR p_body ~ '[\n\r]' OR jsonb_typeof(body) IS DISTINCT FROM 'object'
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
    IF octet_length(p_content) > 1048576 OR p_body::json ->> 'bytes' !~ '^[0-9]{1,10}$' OR (asked ->> 'bytes')::bigint > 1073741824
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL005', MESSAGE = 'an answer of more than 1048576 bytes belongs in a file, of at most 1073741824';
    END IF;
    PERFORM FROM sitr.book FOR UPDATE;
    IF ARRAY(
        SELECT concat_ws(' ', kind, analyst, CASE kind WHEN 'start' THEN body::jsonb ->> 'holder' END)
        FROM sitr.entry WHERE operation = p_operation ORDER BY seq
    ) <> ARRAY['reserve ' || p_analyst, concat_ws(' ', 'start', p_analyst, encode(sha256(convert_to(p_holder, 'UTF8')), 'hex'))]
        OR p_holder IS NULL OR asked ->> 'holder' IS DISTINCT FROM p_holder
    THEN
        RAISE EXCEPTION USING ERRCODE = 'SL003', MESSAGE = 'the operation was not started by this holder';
    ELSIF (asked - ARRAY['bytes', 'holder', 'media', 'sha256'] = '{}'
        AND jsonb_typeof(asked -> 'holder') = 'string'
        AND jsonb_typeof(asked -> 'sha256') = 'string' AND asked ->> 'sha256' ~ '^[0-9a-f]{64}$'
        AND jsonb_typeof(asked -> 'bytes') = 'number'
        AND asked -> 'media' = to_jsonb(p_media) AND p_media IN ('application/octet-stream', 'text/plain', 'application/json')
        -- A file is named by what is in it, and nothing else: whoever reads the answer looks nowhere but there.
        AND (p_content IS NULL) <> (p_path IS NULL) AND coalesce(p_path = asked ->> 'sha256', true)
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
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    SELECT b.id, b.schema_version, e.seq, e.hash INTO id, schema_version, seq, hash
    FROM sitr.book AS b, (SELECT * FROM sitr.entry AS last ORDER BY last.seq DESC LIMIT 1) AS e;
END $$;


--
-- Name: is_name(text); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.is_name(p_text text) RETURNS boolean
    LANGUAGE sql IMMUTABLE
    AS $_$
    SELECT coalesce(p_text <> '' AND octet_length(p_text) <= 200 AND p_text !~ '^ | $|[\U00000001-\U0000001F\U0000007F-\U000000A0\U000000AD-\U000000AD\U0000034F-\U0000034F\U00000378-\U00000379\U00000380-\U00000383\U0000038B-\U0000038B\U0000038D-\U0000038D\U000003A2-\U000003A2\U00000530-\U00000530\U00000557-\U00000558\U0000058B-\U0000058C\U00000590-\U00000590\U000005C8-\U000005CF\U000005EB-\U000005EE\U000005F5-\U00000605\U0000061C-\U0000061C\U000006DD-\U000006DD\U0000070E-\U0000070F\U0000074B-\U0000074C\U000007B2-\U000007BF\U000007FB-\U000007FC\U0000082E-\U0000082F\U0000083F-\U0000083F\U0000085C-\U0000085D\U0000085F-\U0000085F\U0000086B-\U0000086F\U0000088F-\U00000897\U000008E2-\U000008E2\U00000984-\U00000984\U0000098D-\U0000098E\U00000991-\U00000992\U000009A9-\U000009A9\U000009B1-\U000009B1\U000009B3-\U000009B5\U000009BA-\U000009BB\U000009C5-\U000009C6\U000009C9-\U000009CA\U000009CF-\U000009D6\U000009D8-\U000009DB\U000009DE-\U000009DE\U000009E4-\U000009E5\U000009FF-\U00000A00\U00000A04-\U00000A04\U00000A0B-\U00000A0E\U00000A11-\U00000A12\U00000A29-\U00000A29\U00000A31-\U00000A31\U00000A34-\U00000A34\U00000A37-\U00000A37\U00000A3A-\U00000A3B\U00000A3D-\U00000A3D\U00000A43-\U00000A46\U00000A49-\U00000A4A\U00000A4E-\U00000A50\U00000A52-\U00000A58\U00000A5D-\U00000A5D\U00000A5F-\U00000A65\U00000A77-\U00000A80\U00000A84-\U00000A84\U00000A8E-\U00000A8E\U00000A92-\U00000A92\U00000AA9-\U00000AA9\U00000AB1-\U00000AB1\U00000AB4-\U00000AB4\U00000ABA-\U00000ABB\U00000AC6-\U00000AC6\U00000ACA-\U00000ACA\U00000ACE-\U00000ACF\U00000AD1-\U00000ADF\U00000AE4-\U00000AE5\U00000AF2-\U00000AF8\U00000B00-\U00000B00\U00000B04-\U00000B04\U00000B0D-\U00000B0E\U00000B11-\U00000B12\U00000B29-\U00000B29\U00000B31-\U00000B31\U00000B34-\U00000B34\U00000B3A-\U00000B3B\U00000B45-\U00000B46\U00000B49-\U00000B4A\U00000B4E-\U00000B54\U00000B58-\U00000B5B\U00000B5E-\U00000B5E\U00000B64-\U00000B65\U00000B78-\U00000B81\U00000B84-\U00000B84\U00000B8B-\U00000B8D\U00000B91-\U00000B91\U00000B96-\U00000B98\U00000B9B-\U00000B9B\U00000B9D-\U00000B9D\U00000BA0-\U00000BA2\U00000BA5-\U00000BA7\U00000BAB-\U00000BAD\U00000BBA-\U00000BBD\U00000BC3-\U00000BC5\U00000BC9-\U00000BC9\U00000BCE-\U00000BCF\U00000BD1-\U00000BD6\U00000BD8-\U00000BE5\U00000BFB-\U00000BFF\U00000C0D-\U00000C0D\U00000C11-\U00000C11\U00000C29-\U00000C29\U00000C3A-\U00000C3B\U00000C45-\U00000C45\U00000C49-\U00000C49\U00000C4E-\U00000C54\U00000C57-\U00000C57\U00000C5B-\U00000C5C\U00000C5E-\U00000C5F\U00000C64-\U00000C65\U00000C70-\U00000C76\U00000C8D-\U00000C8D\U00000C91-\U00000C91\U00000CA9-\U00000CA9\U00000CB4-\U00000CB4\U00000CBA-\U00000CBB\U00000CC5-\U00000CC5\U00000CC9-\U00000CC9\U00000CCE-\U00000CD4\U00000CD7-\U00000CDC\U00000CDF-\U00000CDF\U00000CE4-\U00000CE5\U00000CF0-\U00000CF0\U00000CF3-\U00000CFF\U00000D0D-\U00000D0D\U00000D11-\U00000D11\U00000D45-\U00000D45\U00000D49-\U00000D49\U00000D50-\U00000D53\U00000D64-\U00000D65\U00000D80-\U00000D80\U00000D84-\U00000D84\U00000D97-\U00000D99\U00000DB2-\U00000DB2\U00000DBC-\U00000DBC\U00000DBE-\U00000DBF\U00000DC7-\U00000DC9\U00000DCB-\U00000DCE\U00000DD5-\U00000DD5\U00000DD7-\U00000DD7\U00000DE0-\U00000DE5\U00000DF0-\U00000DF1\U00000DF5-\U00000E00\U00000E3B-\U00000E3E\U00000E5C-\U00000E80\U00000E83-\U00000E83\U00000E85-\U00000E85\U00000E8B-\U00000E8B\U00000EA4-\U00000EA4\U00000EA6-\U00000EA6\U00000EBE-\U00000EBF\U00000EC5-\U00000EC5\U00000EC7-\U00000EC7\U00000ECE-\U00000ECF\U00000EDA-\U00000EDB\U00000EE0-\U00000EFF\U00000F48-\U00000F48\U00000F6D-\U00000F70\U00000F98-\U00000F98\U00000FBD-\U00000FBD\U00000FCD-\U00000FCD\U00000FDB-\U00000FFF\U000010C6-\U000010C6\U000010C8-\U000010CC\U000010CE-\U000010CF\U0000115F-\U00001160\U00001249-\U00001249\U0000124E-\U0000124F\U00001257-\U00001257\U00001259-\U00001259\U0000125E-\U0000125F\U00001289-\U00001289\U0000128E-\U0000128F\U000012B1-\U000012B1\U000012B6-\U000012B7\U000012BF-\U000012BF\U000012C1-\U000012C1\U000012C6-\U000012C7\U000012D7-\U000012D7\U00001311-\U00001311\U00001316-\U00001317\U0000135B-\U0000135C\U0000137D-\U0000137F\U0000139A-\U0000139F\U000013F6-\U000013F7\U000013FE-\U000013FF\U00001680-\U00001680\U0000169D-\U0000169F\U000016F9-\U000016FF\U00001716-\U0000171E\U00001737-\U0000173F\U00001754-\U0000175F\U0000176D-\U0000176D\U00001771-\U00001771\U00001774-\U0000177F\U000017B4-\U000017B5\U000017DE-\U000017DF\U000017EA-\U000017EF\U000017FA-\U000017FF\U0000180B-\U0000180F\U0000181A-\U0000181F\U00001879-\U0000187F\U000018AB-\U000018AF\U000018F6-\U000018FF\U0000191F-\U0000191F\U0000192C-\U0000192F\U0000193C-\U0000193F\U00001941-\U00001943\U0000196E-\U0000196F\U00001975-\U0000197F\U000019AC-\U000019AF\U000019CA-\U000019CF\U000019DB-\U000019DD\U00001A1C-\U00001A1D\U00001A5F-\U00001A5F\U00001A7D-\U00001A7E\U00001A8A-\U00001A8F\U00001A9A-\U00001A9F\U00001AAE-\U00001AAF\U00001ACF-\U00001AFF\U00001B4D-\U00001B4F\U00001B7F-\U00001B7F\U00001BF4-\U00001BFB\U00001C38-\U00001C3A\U00001C4A-\U00001C4C\U00001C89-\U00001C8F\U00001CBB-\U00001CBC\U00001CC8-\U00001CCF\U00001CFB-\U00001CFF\U00001F16-\U00001F17\U00001F1E-\U00001F1F\U00001F46-\U00001F47\U00001F4E-\U00001F4F\U00001F58-\U00001F58\U00001F5A-\U00001F5A\U00001F5C-\U00001F5C\U00001F5E-\U00001F5E\U00001F7E-\U00001F7F\U00001FB5-\U00001FB5\U00001FC5-\U00001FC5\U00001FD4-\U00001FD5\U00001FDC-\U00001FDC\U00001FF0-\U00001FF1\U00001FF5-\U00001FF5\U00001FFF-\U0000200F\U00002028-\U0000202F\U0000205F-\U0000206F\U00002072-\U00002073\U0000208F-\U0000208F\U0000209D-\U0000209F\U000020C1-\U000020CF\U000020F1-\U000020FF\U0000218C-\U0000218F\U00002427-\U0000243F\U0000244B-\U0000245F\U00002800-\U00002800\U00002B74-\U00002B75\U00002B96-\U00002B96\U00002CF4-\U00002CF8\U00002D26-\U00002D26\U00002D28-\U00002D2C\U00002D2E-\U00002D2F\U00002D68-\U00002D6E\U00002D71-\U00002D7E\U00002D97-\U00002D9F\U00002DA7-\U00002DA7\U00002DAF-\U00002DAF\U00002DB7-\U00002DB7\U00002DBF-\U00002DBF\U00002DC7-\U00002DC7\U00002DCF-\U00002DCF\U00002DD7-\U00002DD7\U00002DDF-\U00002DDF\U00002E5E-\U00002E7F\U00002E9A-\U00002E9A\U00002EF4-\U00002EFF\U00002FD6-\U00002FEF\U00002FFC-\U00003000\U00003040-\U00003040\U00003097-\U00003098\U00003100-\U00003104\U00003130-\U00003130\U00003164-\U00003164\U0000318F-\U0000318F\U000031E4-\U000031EF\U0000321F-\U0000321F\U0000A48D-\U0000A48F\U0000A4C7-\U0000A4CF\U0000A62C-\U0000A63F\U0000A6F8-\U0000A6FF\U0000A7CB-\U0000A7CF\U0000A7D2-\U0000A7D2\U0000A7D4-\U0000A7D4\U0000A7DA-\U0000A7F1\U0000A82D-\U0000A82F\U0000A83A-\U0000A83F\U0000A878-\U0000A87F\U0000A8C6-\U0000A8CD\U0000A8DA-\U0000A8DF\U0000A954-\U0000A95E\U0000A97D-\U0000A97F\U0000A9CE-\U0000A9CE\U0000A9DA-\U0000A9DD\U0000A9FF-\U0000A9FF\U0000AA37-\U0000AA3F\U0000AA4E-\U0000AA4F\U0000AA5A-\U0000AA5B\U0000AAC3-\U0000AADA\U0000AAF7-\U0000AB00\U0000AB07-\U0000AB08\U0000AB0F-\U0000AB10\U0000AB17-\U0000AB1F\U0000AB27-\U0000AB27\U0000AB2F-\U0000AB2F\U0000AB6C-\U0000AB6F\U0000ABEE-\U0000ABEF\U0000ABFA-\U0000ABFF\U0000D7A4-\U0000D7AF\U0000D7C7-\U0000D7CA\U0000D7FC-\U0000F8FF\U0000FA6E-\U0000FA6F\U0000FADA-\U0000FAFF\U0000FB07-\U0000FB12\U0000FB18-\U0000FB1C\U0000FB37-\U0000FB37\U0000FB3D-\U0000FB3D\U0000FB3F-\U0000FB3F\U0000FB42-\U0000FB42\U0000FB45-\U0000FB45\U0000FBC3-\U0000FBD2\U0000FD90-\U0000FD91\U0000FDC8-\U0000FDCE\U0000FDD0-\U0000FDEF\U0000FE00-\U0000FE0F\U0000FE1A-\U0000FE1F\U0000FE53-\U0000FE53\U0000FE67-\U0000FE67\U0000FE6C-\U0000FE6F\U0000FE75-\U0000FE75\U0000FEFD-\U0000FF00\U0000FFA0-\U0000FFA0\U0000FFBF-\U0000FFC1\U0000FFC8-\U0000FFC9\U0000FFD0-\U0000FFD1\U0000FFD8-\U0000FFD9\U0000FFDD-\U0000FFDF\U0000FFE7-\U0000FFE7\U0000FFEF-\U0000FFFB\U0000FFFE-\U0000FFFF\U0001000C-\U0001000C\U00010027-\U00010027\U0001003B-\U0001003B\U0001003E-\U0001003E\U0001004E-\U0001004F\U0001005E-\U0001007F\U000100FB-\U000100FF\U00010103-\U00010106\U00010134-\U00010136\U0001018F-\U0001018F\U0001019D-\U0001019F\U000101A1-\U000101CF\U000101FE-\U0001027F\U0001029D-\U0001029F\U000102D1-\U000102DF\U000102FC-\U000102FF\U00010324-\U0001032C\U0001034B-\U0001034F\U0001037B-\U0001037F\U0001039E-\U0001039E\U000103C4-\U000103C7\U000103D6-\U000103FF\U0001049E-\U0001049F\U000104AA-\U000104AF\U000104D4-\U000104D7\U000104FC-\U000104FF\U00010528-\U0001052F\U00010564-\U0001056E\U0001057B-\U0001057B\U0001058B-\U0001058B\U00010593-\U00010593\U00010596-\U00010596\U000105A2-\U000105A2\U000105B2-\U000105B2\U000105BA-\U000105BA\U000105BD-\U000105FF\U00010737-\U0001073F\U00010756-\U0001075F\U00010768-\U0001077F\U00010786-\U00010786\U000107B1-\U000107B1\U000107BB-\U000107FF\U00010806-\U00010807\U00010809-\U00010809\U00010836-\U00010836\U00010839-\U0001083B\U0001083D-\U0001083E\U00010856-\U00010856\U0001089F-\U000108A6\U000108B0-\U000108DF\U000108F3-\U000108F3\U000108F6-\U000108FA\U0001091C-\U0001091E\U0001093A-\U0001093E\U00010940-\U0001097F\U000109B8-\U000109BB\U000109D0-\U000109D1\U00010A04-\U00010A04\U00010A07-\U00010A0B\U00010A14-\U00010A14\U00010A18-\U00010A18\U00010A36-\U00010A37\U00010A3B-\U00010A3E\U00010A49-\U00010A4F\U00010A59-\U00010A5F\U00010AA0-\U00010ABF\U00010AE7-\U00010AEA\U00010AF7-\U00010AFF\U00010B36-\U00010B38\U00010B56-\U00010B57\U00010B73-\U00010B77\U00010B92-\U00010B98\U00010B9D-\U00010BA8\U00010BB0-\U00010BFF\U00010C49-\U00010C7F\U00010CB3-\U00010CBF\U00010CF3-\U00010CF9\U00010D28-\U00010D2F\U00010D3A-\U00010E5F\U00010E7F-\U00010E7F\U00010EAA-\U00010EAA\U00010EAE-\U00010EAF\U00010EB2-\U00010EFF\U00010F28-\U00010F2F\U00010F5A-\U00010F6F\U00010F8A-\U00010FAF\U00010FCC-\U00010FDF\U00010FF7-\U00010FFF\U0001104E-\U00011051\U00011076-\U0001107E\U000110BD-\U000110BD\U000110C3-\U000110CF\U000110E9-\U000110EF\U000110FA-\U000110FF\U00011135-\U00011135\U00011148-\U0001114F\U00011177-\U0001117F\U000111E0-\U000111E0\U000111F5-\U000111FF\U00011212-\U00011212\U0001123F-\U0001127F\U00011287-\U00011287\U00011289-\U00011289\U0001128E-\U0001128E\U0001129E-\U0001129E\U000112AA-\U000112AF\U000112EB-\U000112EF\U000112FA-\U000112FF\U00011304-\U00011304\U0001130D-\U0001130E\U00011311-\U00011312\U00011329-\U00011329\U00011331-\U00011331\U00011334-\U00011334\U0001133A-\U0001133A\U00011345-\U00011346\U00011349-\U0001134A\U0001134E-\U0001134F\U00011351-\U00011356\U00011358-\U0001135C\U00011364-\U00011365\U0001136D-\U0001136F\U00011375-\U000113FF\U0001145C-\U0001145C\U00011462-\U0001147F\U000114C8-\U000114CF\U000114DA-\U0001157F\U000115B6-\U000115B7\U000115DE-\U000115FF\U00011645-\U0001164F\U0001165A-\U0001165F\U0001166D-\U0001167F\U000116BA-\U000116BF\U000116CA-\U000116FF\U0001171B-\U0001171C\U0001172C-\U0001172F\U00011747-\U000117FF\U0001183C-\U0001189F\U000118F3-\U000118FE\U00011907-\U00011908\U0001190A-\U0001190B\U00011914-\U00011914\U00011917-\U00011917\U00011936-\U00011936\U00011939-\U0001193A\U00011947-\U0001194F\U0001195A-\U0001199F\U000119A8-\U000119A9\U000119D8-\U000119D9\U000119E5-\U000119FF\U00011A48-\U00011A4F\U00011AA3-\U00011AAF\U00011AF9-\U00011BFF\U00011C09-\U00011C09\U00011C37-\U00011C37\U00011C46-\U00011C4F\U00011C6D-\U00011C6F\U00011C90-\U00011C91\U00011CA8-\U00011CA8\U00011CB7-\U00011CFF\U00011D07-\U00011D07\U00011D0A-\U00011D0A\U00011D37-\U00011D39\U00011D3B-\U00011D3B\U00011D3E-\U00011D3E\U00011D48-\U00011D4F\U00011D5A-\U00011D5F\U00011D66-\U00011D66\U00011D69-\U00011D69\U00011D8F-\U00011D8F\U00011D92-\U00011D92\U00011D99-\U00011D9F\U00011DAA-\U00011EDF\U00011EF9-\U00011FAF\U00011FB1-\U00011FBF\U00011FF2-\U00011FFE\U0001239A-\U000123FF\U0001246F-\U0001246F\U00012475-\U0001247F\U00012544-\U00012F8F\U00012FF3-\U00012FFF\U0001342F-\U000143FF\U00014647-\U000167FF\U00016A39-\U00016A3F\U00016A5F-\U00016A5F\U00016A6A-\U00016A6D\U00016ABF-\U00016ABF\U00016ACA-\U00016ACF\U00016AEE-\U00016AEF\U00016AF6-\U00016AFF\U00016B46-\U00016B4F\U00016B5A-\U00016B5A\U00016B62-\U00016B62\U00016B78-\U00016B7C\U00016B90-\U00016E3F\U00016E9B-\U00016EFF\U00016F4B-\U00016F4E\U00016F88-\U00016F8E\U00016FA0-\U00016FDF\U00016FE4-\U00016FEF\U00016FF2-\U00016FFF\U000187F8-\U000187FF\U00018CD6-\U00018CFF\U00018D09-\U0001AFEF\U0001AFF4-\U0001AFF4\U0001AFFC-\U0001AFFC\U0001AFFF-\U0001AFFF\U0001B123-\U0001B14F\U0001B153-\U0001B163\U0001B168-\U0001B16F\U0001B2FC-\U0001BBFF\U0001BC6B-\U0001BC6F\U0001BC7D-\U0001BC7F\U0001BC89-\U0001BC8F\U0001BC9A-\U0001BC9B\U0001BCA0-\U0001CEFF\U0001CF2E-\U0001CF2F\U0001CF47-\U0001CF4F\U0001CFC4-\U0001CFFF\U0001D0F6-\U0001D0FF\U0001D127-\U0001D128\U0001D159-\U0001D159\U0001D173-\U0001D17A\U0001D1EB-\U0001D1FF\U0001D246-\U0001D2DF\U0001D2F4-\U0001D2FF\U0001D357-\U0001D35F\U0001D379-\U0001D3FF\U0001D455-\U0001D455\U0001D49D-\U0001D49D\U0001D4A0-\U0001D4A1\U0001D4A3-\U0001D4A4\U0001D4A7-\U0001D4A8\U0001D4AD-\U0001D4AD\U0001D4BA-\U0001D4BA\U0001D4BC-\U0001D4BC\U0001D4C4-\U0001D4C4\U0001D506-\U0001D506\U0001D50B-\U0001D50C\U0001D515-\U0001D515\U0001D51D-\U0001D51D\U0001D53A-\U0001D53A\U0001D53F-\U0001D53F\U0001D545-\U0001D545\U0001D547-\U0001D549\U0001D551-\U0001D551\U0001D6A6-\U0001D6A7\U0001D7CC-\U0001D7CD\U0001DA8C-\U0001DA9A\U0001DAA0-\U0001DAA0\U0001DAB0-\U0001DEFF\U0001DF1F-\U0001DFFF\U0001E007-\U0001E007\U0001E019-\U0001E01A\U0001E022-\U0001E022\U0001E025-\U0001E025\U0001E02B-\U0001E0FF\U0001E12D-\U0001E12F\U0001E13E-\U0001E13F\U0001E14A-\U0001E14D\U0001E150-\U0001E28F\U0001E2AF-\U0001E2BF\U0001E2FA-\U0001E2FE\U0001E300-\U0001E7DF\U0001E7E7-\U0001E7E7\U0001E7EC-\U0001E7EC\U0001E7EF-\U0001E7EF\U0001E7FF-\U0001E7FF\U0001E8C5-\U0001E8C6\U0001E8D7-\U0001E8FF\U0001E94C-\U0001E94F\U0001E95A-\U0001E95D\U0001E960-\U0001EC70\U0001ECB5-\U0001ED00\U0001ED3E-\U0001EDFF\U0001EE04-\U0001EE04\U0001EE20-\U0001EE20\U0001EE23-\U0001EE23\U0001EE25-\U0001EE26\U0001EE28-\U0001EE28\U0001EE33-\U0001EE33\U0001EE38-\U0001EE38\U0001EE3A-\U0001EE3A\U0001EE3C-\U0001EE41\U0001EE43-\U0001EE46\U0001EE48-\U0001EE48\U0001EE4A-\U0001EE4A\U0001EE4C-\U0001EE4C\U0001EE50-\U0001EE50\U0001EE53-\U0001EE53\U0001EE55-\U0001EE56\U0001EE58-\U0001EE58\U0001EE5A-\U0001EE5A\U0001EE5C-\U0001EE5C\U0001EE5E-\U0001EE5E\U0001EE60-\U0001EE60\U0001EE63-\U0001EE63\U0001EE65-\U0001EE66\U0001EE6B-\U0001EE6B\U0001EE73-\U0001EE73\U0001EE78-\U0001EE78\U0001EE7D-\U0001EE7D\U0001EE7F-\U0001EE7F\U0001EE8A-\U0001EE8A\U0001EE9C-\U0001EEA0\U0001EEA4-\U0001EEA4\U0001EEAA-\U0001EEAA\U0001EEBC-\U0001EEEF\U0001EEF2-\U0001EFFF\U0001F02C-\U0001F02F\U0001F094-\U0001F09F\U0001F0AF-\U0001F0B0\U0001F0C0-\U0001F0C0\U0001F0D0-\U0001F0D0\U0001F0F6-\U0001F0FF\U0001F1AE-\U0001F1E5\U0001F203-\U0001F20F\U0001F23C-\U0001F23F\U0001F249-\U0001F24F\U0001F252-\U0001F25F\U0001F266-\U0001F2FF\U0001F6D8-\U0001F6DC\U0001F6ED-\U0001F6EF\U0001F6FD-\U0001F6FF\U0001F774-\U0001F77F\U0001F7D9-\U0001F7DF\U0001F7EC-\U0001F7EF\U0001F7F1-\U0001F7FF\U0001F80C-\U0001F80F\U0001F848-\U0001F84F\U0001F85A-\U0001F85F\U0001F888-\U0001F88F\U0001F8AE-\U0001F8AF\U0001F8B2-\U0001F8FF\U0001FA54-\U0001FA5F\U0001FA6E-\U0001FA6F\U0001FA75-\U0001FA77\U0001FA7D-\U0001FA7F\U0001FA87-\U0001FA8F\U0001FAAD-\U0001FAAF\U0001FABB-\U0001FABF\U0001FAC6-\U0001FACF\U0001FADA-\U0001FADF\U0001FAE8-\U0001FAEF\U0001FAF7-\U0001FAFF\U0001FB93-\U0001FB93\U0001FBCB-\U0001FBEF\U0001FBFA-\U0001FFFF\U0002A6E0-\U0002A6FF\U0002B739-\U0002B73F\U0002B81E-\U0002B81F\U0002CEA2-\U0002CEAF\U0002EBE1-\U0002F7FF\U0002FA1E-\U0002FFFF\U0003134B-\U0010FFFF]'
        AND p_text IS NFC NORMALIZED, false)
$_$;


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
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    RETURN QUERY
    SELECT a.* FROM sitr.answer AS a JOIN sitr.entry AS e ON e.operation = a.operation AND e.kind = 'reserve'
    WHERE a.operation = p_operation AND e.analyst = p_analyst AND (p_analyst = session_user OR sitr.is_owner());
END $$;


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
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    RETURN QUERY
    SELECT seq, at, kind, operation, analyst, CASE WHEN mine THEN body ELSE '{}' END, CASE WHEN mine THEN hash ELSE '' END
    FROM (SELECT *, analyst = session_user OR sitr.is_owner() AS mine FROM sitr.entry WHERE operation = p_operation) AS e
    ORDER BY seq;
END $$;


--
-- Name: reserve(text, text, text); Type: FUNCTION; Schema: sitr; Owner: -
--

CREATE FUNCTION sitr.reserve(p_operation text, p_analyst text, p_body text) RETURNS sitr.entry
    LANGUAGE plpgsql SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $_$
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
    budgets integer := 0;
    wholes integer := 0;
BEGIN
    IF jsonb_array_length(asked -> 'blocks') > 0 THEN
        blocks := ARRAY(SELECT DISTINCT jsonb_array_elements_text(asked -> 'blocks'));
    END IF;
    -- The form that the ledger writes: what it could not read would spoil the book for everyone. Lists of text in which
    -- nothing stands twice are those that their elements, as text, make up again. The nonce keeps others from confirming
    -- by the hash of the entry what they guess that it says.
    IF (asked ?& parts AND asked - parts = '{}' AND jsonb_typeof(asked -> 'event') = 'object'
        AND jsonb_typeof(asked -> 'request') = 'string' AND asked ->> 'request' ~ '^[0-9a-f]{64}$'
        AND jsonb_typeof(asked -> 'nonce') = 'string' AND asked ->> 'nonce' ~ '^[0-9a-f]{32}$'
        AND (asked -> 'purpose' = 'null' OR jsonb_typeof(asked -> 'purpose') = 'string' AND sitr.is_name(asked ->> 'purpose'))
        AND json_typeof(due) = 'object' AND jsonb_typeof(asked -> 'blocks') = 'array'
        AND jsonb_array_length(asked -> 'datasets') = cardinality(datasets) AND asked -> 'datasets' @> to_jsonb(datasets)
        AND jsonb_array_length(asked -> 'blocks') = cardinality(blocks) AND asked -> 'blocks' @> to_jsonb(blocks)
        AND array_position(datasets, NULL) IS NULL AND array_position(blocks, NULL) IS NULL
        AND array_to_string(datasets, '') !~ '/'
        AND (SELECT bool_and(sitr.is_name(one)) FROM unnest(datasets || blocks) AS one)) IS NOT TRUE
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
END $_$;


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
    LANGUAGE plpgsql STABLE SECURITY DEFINER
    SET search_path TO 'pg_catalog', 'pg_temp'
    AS $$
BEGIN
    RETURN QUERY SELECT * FROM sitr.budget
    WHERE name = ANY (p_names)
        AND (split_part(name, '/', 2) <> 'analyst' OR name = split_part(name, '/', 1) || '/analyst/' || session_user
             OR sitr.is_owner())
    ORDER BY name COLLATE "C";
END $$;


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
c1	application/json	\\x7b226f70223a226331227d	\N
t1	application/json	\\x7b226f70223a227431227d	\N
t2	application/json	\\x7b226f70223a227432227d	\N
t5	application/json	\\x7b226f70223a227435227d	\N
l1	application/json	\\x7b226f70223a226c31227d	\N
l2	application/json	\\x7b226f70223a226c32227d	\N
w1	application/json	\\x7b226f70223a227731227d	\N
w2	application/json	\\x7b226f70223a227732227d	\N
w3	application/json	\\x7b226f70223a227733227d	\N
w4	application/json	\\x7b226f70223a227734227d	\N
s1	application/json	\\x7b226f70223a227331227d	\N
s2	application/json	\\x7b226f70223a227332227d	\N
\.


--
-- Data for Name: block; Type: TABLE DATA; Schema: sitr; Owner: -
--

COPY sitr.block (budget, block, cost, delta) FROM stdin;
clinic	north	144115188075855872	0
wards	north	685422927713210123	0
wards	south	231944571699324347	0
\.


--
-- Data for Name: book; Type: TABLE DATA; Schema: sitr; Owner: -
--

COPY sitr.book (id, schema_version) FROM stdin;
497243eb84d14cd2a0436013f912f7f8	2
\.


--
-- Data for Name: budget; Type: TABLE DATA; Schema: sitr; Owner: -
--

COPY sitr.budget (name, version, body, cost, delta, peak_cost, peak_delta) FROM stdin;
idle	1	{"adjacency":"add_remove","delta":1e-05,"epsilon":3.0,"filter":{"alpha":7.572174088247668,"delta":9.999999999981812e-07,"epsilon":1.6818741792888718,"type":"rdp"},"unit":"person"}	0	0	0	0
clinic	1	{"adjacency":"add_remove","disjoint_by":"ward","epsilon":2.0,"filter":{"delta":0.0,"epsilon":2.0,"type":"pure"},"unit":"person"}	0	0	144115188075855872	0
tax/analyst/badr	1	{"adjacency":"add_remove","delta":1e-06,"epsilon":0.5,"filter":{"alpha":40.42873659547029,"delta":9.99999999998181e-08,"epsilon":0.265810377739412,"type":"rdp"},"unit":"person"}	145345580684289308	0	0	0
tax	2	{"adjacency":"add_remove","delta":2e-06,"epsilon":2.0,"filter":{"alpha":22.17748460295068,"delta":1.999999999996362e-07,"epsilon":1.5678647109532615,"type":"rdp"},"unit":"person"}	233020175184213204	5764607523044722	0	0
school	1	{"adjacency":"add_remove","delta":1e-09,"filter":{"delta":1e-09,"rho":0.5,"type":"zcdp"},"rho":0.5,"unit":"person"}	720575940379280	0	0	0
lab	1	{"adjacency":"add_remove","delta":1e-06,"epsilon":1.0,"filter":{"alpha":22.17748460295068,"delta":9.99999999998181e-08,"epsilon":0.5351343280264903,"type":"rdp"},"unit":"person"}	36668238070052519	0	0	0
wards	1	{"adjacency":"add_remove","delta":1e-06,"disjoint_by":"ward","epsilon":1.0,"filter":{"alpha":22.17748460295068,"delta":9.99999999998181e-08,"epsilon":0.5351343280264903,"type":"rdp"},"unit":"person"}	73822039482678405	0	685422927713210123	0
swaps	1	{"adjacency":"replace_one","delta":1e-06,"disjoint_by":"ward","epsilon":1.0,"filter":{"alpha":22.17748460295068,"delta":9.99999999998181e-08,"epsilon":0.5351343280264903,"type":"rdp"},"unit":"person"}	685422927713210123	0	0	0
\.


--
-- Data for Name: entry; Type: TABLE DATA; Schema: sitr; Owner: -
--

COPY sitr.entry (seq, at, kind, operation, analyst, body, hash) FROM stdin;
1	2026-11-17T02:11:57.946442+00:00	open	\N	\N	{"sitr":"0.1.0"}	fd97ec06b1d7c83d5a8aee3badd067cc6ac00cf5a84f1d4b633d233830740e62
2	2026-11-17T02:11:57.976234+00:00	budget	\N	\N	{"definition":"{\\"adjacency\\":\\"add_remove\\",\\"disjoint_by\\":\\"ward\\",\\"epsilon\\":2.0,\\"filter\\":{\\"delta\\":0.0,\\"epsilon\\":2.0,\\"type\\":\\"pure\\"},\\"unit\\":\\"person\\"}","name":"clinic","nonce":"3963da54c2d834c87a2b03eb7afab385"}	877b126ee36714d5878a09dedf9fabbc4c8b2f77623dabbb64de53de7c9b8cdd
3	2026-11-17T02:11:57.984470+00:00	budget	\N	\N	{"definition":"{\\"adjacency\\":\\"add_remove\\",\\"delta\\":1e-06,\\"epsilon\\":1.0,\\"filter\\":{\\"alpha\\":22.17748460295068,\\"delta\\":9.99999999998181e-08,\\"epsilon\\":0.5351343280264903,\\"type\\":\\"rdp\\"},\\"unit\\":\\"person\\"}","name":"tax","nonce":"0e1dadd5284a783852ca3048a203cc5c"}	e8b524730a5410cd0de260aa72f67f08ea59f3898fa92e68c62fbc44f005e156
4	2026-11-17T02:11:57.997858+00:00	budget	\N	\N	{"definition":"{\\"adjacency\\":\\"add_remove\\",\\"delta\\":1e-06,\\"epsilon\\":0.5,\\"filter\\":{\\"alpha\\":40.42873659547029,\\"delta\\":9.99999999998181e-08,\\"epsilon\\":0.265810377739412,\\"type\\":\\"rdp\\"},\\"unit\\":\\"person\\"}","name":"tax/analyst/badr","nonce":"b8b5fc24edb18fd1c2bd9644a892ef88"}	9e5cbb0881c2c3a57fa0de5ce269a8d7d8f013f63743e9501831ea006415f580
5	2026-11-17T02:11:58.009692+00:00	budget	\N	\N	{"definition":"{\\"adjacency\\":\\"add_remove\\",\\"delta\\":1e-06,\\"epsilon\\":1.0,\\"filter\\":{\\"alpha\\":22.17748460295068,\\"delta\\":9.99999999998181e-08,\\"epsilon\\":0.5351343280264903,\\"type\\":\\"rdp\\"},\\"unit\\":\\"person\\"}","name":"lab","nonce":"7ae8a0e7df0294bd659612369c67e14e"}	965a3917ea8da2927549d85f98c2ccc2e4b5d03d55862ad9d291ab01fb11014b
6	2026-11-17T02:11:58.021577+00:00	budget	\N	\N	{"definition":"{\\"adjacency\\":\\"add_remove\\",\\"delta\\":1e-06,\\"disjoint_by\\":\\"ward\\",\\"epsilon\\":1.0,\\"filter\\":{\\"alpha\\":22.17748460295068,\\"delta\\":9.99999999998181e-08,\\"epsilon\\":0.5351343280264903,\\"type\\":\\"rdp\\"},\\"unit\\":\\"person\\"}","name":"wards","nonce":"326944a1ffaccdb501d86a17b512e5b5"}	df387bfb4090e10fc17db368973d50a92fbf581812acf3ea536b74d4b133352d
7	2026-11-17T02:11:58.032602+00:00	budget	\N	\N	{"definition":"{\\"adjacency\\":\\"replace_one\\",\\"delta\\":1e-06,\\"disjoint_by\\":\\"ward\\",\\"epsilon\\":1.0,\\"filter\\":{\\"alpha\\":22.17748460295068,\\"delta\\":9.99999999998181e-08,\\"epsilon\\":0.5351343280264903,\\"type\\":\\"rdp\\"},\\"unit\\":\\"person\\"}","name":"swaps","nonce":"cb5aa070d96c3a2a332c84e563ba78a4"}	f10ee056920da610440fd5d1e163a3a9652b219c6b37b545070d5aea8b7a60ca
8	2026-11-17T02:11:58.040882+00:00	budget	\N	\N	{"definition":"{\\"adjacency\\":\\"add_remove\\",\\"delta\\":1e-09,\\"filter\\":{\\"delta\\":1e-09,\\"rho\\":0.5,\\"type\\":\\"zcdp\\"},\\"rho\\":0.5,\\"unit\\":\\"person\\"}","name":"school","nonce":"192109b75b1d2ab7c48047f6a7597c29"}	2496609be4efe4d8b1dd1a6858d326e37db71bbc78729db6ef5b09445c185ca3
9	2026-11-17T02:11:58.054120+00:00	budget	\N	\N	{"definition":"{\\"adjacency\\":\\"add_remove\\",\\"delta\\":1e-05,\\"epsilon\\":3.0,\\"filter\\":{\\"alpha\\":7.572174088247668,\\"delta\\":9.999999999981812e-07,\\"epsilon\\":1.6818741792888718,\\"type\\":\\"rdp\\"},\\"unit\\":\\"person\\"}","name":"idle","nonce":"27c59f5a4cce433cc001d4fca7b6855f"}	17becb84b17c716230dcfd44648f06045b410120521c9797b4be8b3d07f8d051
10	2026-11-17T02:11:58.072033+00:00	reserve	c1	amina	{"blocks":["north"],"budgets":{"clinic":{"cost":144115188075855872,"delta":0,"version":1}},"datasets":["clinic"],"event":{"epsilon":0.25,"schema_version":1,"type":"pure_dp"},"nonce":"b1837eb0b174c36b992177a085575319","purpose":null,"request":"6ce27f03ea3e3ad11472818c26fdfaf9e836a7cc7a89c923017b22437ca92705"}	afc42adc4f8f7422e662d3dc0b29607c594e0a8ffa1ac18711f5f1f95347693a
11	2026-11-17T02:11:58.075666+00:00	start	c1	amina	{"holder":"e9b169e0a5e785484c859f844482ce71bc00ded9a012818585238e41e317e611"}	f0bc537ad80514825ddf7f8c9d34df22161eaf3f1bfbb549e4cc75769a7bb002
12	2026-11-17T02:11:58.080120+00:00	commit	c1	amina	{"bytes":11,"holder":"d493a00d333e431e3a251fcea6cf1168","media":"application/json","sha256":"8ae971af14703d58d883068c8136302c9319a30d8175c08b936e2e6c9a3b2095"}	7329c4d46e2156513becc8279ee25287295d0561b293485834d1d5c6550081b4
13	2026-11-17T02:11:58.084472+00:00	reserve	t1	amina	{"blocks":[],"budgets":{"tax":{"cost":151212326428649107,"delta":0,"version":1}},"datasets":["tax"],"event":{"epsilon":0.1,"schema_version":1,"type":"pure_dp"},"nonce":"ec304060ab6812550374510f9ce05819","purpose":null,"request":"20ac989a2ee1150a87889e14b2b64f35e81f4c689dc241f709946b1370c13da7"}	89615ba6b37fb58f205aa01de350036fad974c9e4a4d965b3c166d8d4030e62d
14	2026-11-17T02:11:58.085815+00:00	start	t1	amina	{"holder":"31364cfb2a8c8f2190beb325147846a2d9ab8eb5c6ce61b0c16e94848b48f58f"}	ad8f5df9c8fe30d2b845a3676a6473325db35d13c33e0b3533a8d875cde1bb44
15	2026-11-17T02:11:58.091295+00:00	commit	t1	amina	{"bytes":11,"holder":"88a7c6d9cba5db826fe08c87b1425ff5","media":"application/json","sha256":"9491512563d6974e1d3d89bbc50892180e6419b1f13c1ec581d1f44c3e301799"}	1147ee0275b9f44f9401fa9cfecb597fe4b90992c6d0c895e9eeed8d1b5daec4
16	2026-11-17T02:11:58.096433+00:00	reserve	t2	badr	{"blocks":[],"budgets":{"tax":{"cost":50740648412887235,"delta":0,"version":1},"tax/analyst/badr":{"cost":145345580684289308,"delta":0,"version":1}},"datasets":["tax"],"event":{"epsilon":0.05,"schema_version":1,"type":"pure_dp"},"nonce":"a66302afab6e7d5f7e5f871705986a32","purpose":null,"request":"67c2e5a5aed9ee7405cd4e7b607e6397ab70acfe424f5e0350951d64a5c367a8"}	f2ccecd8f0d49264f1d72301ac7a89581aa06fa156210b719e51df31abf230ba
17	2026-11-17T02:11:58.099241+00:00	start	t2	badr	{"holder":"0f79ddedef1e8e3cf5b1deece593be24ea1292936c209e212a93c5fc0e8a8fe7"}	fc68f3e24879308bc03f5a725f7e7f3057692eae6b5d7711e6fc9c619a06bda0
18	2026-11-17T02:11:58.103299+00:00	commit	t2	badr	{"bytes":11,"holder":"cff3964f41f9c1536587b78a0986bfe7","media":"application/json","sha256":"0879111fabd9dbe2e57b13af2d1b3098c9c5336d6c62919fdd13bd69befed0d8"}	7c5b890edb4819cb01bdf123f7991a49164c0bb2b9d8bd4ed6f8332f7b4bc4b1
19	2026-11-17T02:11:58.105750+00:00	reserve	t3	amina	{"blocks":[],"budgets":{"tax":{"cost":201539815917442601,"delta":0,"version":1}},"datasets":["tax"],"event":{"noise_multiplier":8.0,"schema_version":1,"type":"laplace"},"nonce":"af833958f5942d15fc084b01769cf0b5","purpose":null,"request":"18ac0b180c1bde56cc203843c7c8f7fbb0a4fc516d12e9fc10fdf24b44a5f76d"}	d2e801b138226dd9c88af13a38fd5f9f4a60bcb1a6a7f8065ae9fedbf63e8e4a
20	2026-11-17T02:11:58.107197+00:00	start	t3	amina	{"holder":"a2f331c0c296c2204a3195febe6890e01c3bb753187cacab52155ec0d3684f62"}	fbdb14bad92fcb1cf4ca2426ba3ef39babe7669e30d050386e590f1dc9490449
21	2026-11-17T02:11:58.111781+00:00	reserve	t4	amina	{"blocks":[],"budgets":{"tax":{"cost":370057389703538025,"delta":0,"version":1}},"datasets":["tax"],"event":{"epsilon":0.2,"schema_version":1,"type":"pure_dp"},"nonce":"805bd06af30a3201075fa486a83012f7","purpose":null,"request":"43fc971bc07ef072656f32f3985c79b0c36ca9cc5f200ecbc8675e3b7fb753f9"}	4477bc40dd6d3df1cfbd8aeeae7b576fe23a21ad785416487e9b3ae2b3485711
22	2026-11-17T02:11:58.135750+00:00	refund	t4	amina	{"nonce":"653a4e16ba155ebd06849f16d9cfcd40","reason":"never ran"}	c5a67330fc4fa19b65c48de1a36e03b84920adafbbab92e33b83b6f7f814f408
23	2026-11-17T02:11:58.147974+00:00	raise	\N	\N	{"definition":"{\\"adjacency\\":\\"add_remove\\",\\"delta\\":2e-06,\\"epsilon\\":2.0,\\"filter\\":{\\"alpha\\":22.17748460295068,\\"delta\\":1.999999999996362e-07,\\"epsilon\\":1.5678647109532615,\\"type\\":\\"rdp\\"},\\"unit\\":\\"person\\"}","name":"tax","nonce":"d6cac881a1fba932e9a8bad2b4eb0d6b","reason":"second year"}	b58b0bd2eea44961903a80cc39e845e8b534af079ab8e62cb913d7174cbceda8
24	2026-11-17T02:11:58.173263+00:00	reserve	t5	amina	{"blocks":[],"budgets":{"tax":{"cost":25196502744225481,"delta":5764607523044722,"version":2}},"datasets":["tax"],"event":{"delta":1e-09,"epsilon":0.0625,"schema_version":1,"type":"approximate_dp"},"nonce":"927669d2870c84000e1c4df3ab4cb163","purpose":null,"request":"3340fedc9e3729e5cc2e3c8718788c14fa6099e7fb0b4665637dfde3a7b3feaf"}	0211f0f39344bb24c359f8c621732f1eef8af55e6b76279e0b3db6cbddc0a35f
25	2026-11-17T02:11:58.175624+00:00	start	t5	amina	{"holder":"e60089c1e50ce7d5dfe6d2c50d039c5edd41acb003e3fb546fd3809430600818"}	38c38bcfda1d40fbad2fed589f2315faf5fbd5e5d7ce86571d2f6bf212ffe885
26	2026-11-17T02:11:58.184211+00:00	commit	t5	amina	{"bytes":11,"holder":"47f5d7020af6d2c4dc6f03d23ff835e1","media":"application/json","sha256":"fbb5a5f40eed0b9b0d2dc4a7130b3c0648cc2616b593d4a342628629f5567929"}	6a28328b36401b8bbabcb8b02f050d080473b718e491934a826246f27cf503f6
27	2026-11-17T02:11:58.186019+00:00	reserve	t6	amina	{"blocks":[],"budgets":{"tax":{"cost":70105894918827498,"delta":0,"version":2}},"datasets":["tax"],"event":{"epsilon":0.125,"schema_version":1,"type":"pure_dp"},"nonce":"14a1c23a6a5ee0acfcea18eae670e4c2","purpose":null,"request":"f6920e61f698b3bee002da5570a901a07b6ebe7f9a0f83662a99b1b4dde3c115"}	c0d0c67811a5e6585c6a71ff6bf36e38f8688eb63738ec6776f070b22ba1c523
28	2026-11-17T02:11:58.193392+00:00	reserve	l1	amina	{"blocks":[],"budgets":{"lab":{"cost":14931355536424421,"delta":0,"version":1},"school":{"cost":720575940379280,"delta":0,"version":1}},"datasets":["lab","school"],"event":{"noise_multiplier":40.0,"schema_version":1,"type":"gaussian"},"nonce":"e5187e0f0ec5f1d939b391cf7774e737","purpose":null,"request":"3a814af7e6da6f196ad120422508949cf3d030fb842e49b2b565c679b78c9002"}	9b365d3042dcdf15400926cd8f5e77bb09baa5b75f7a7c13557e9dffc4b927dc
29	2026-11-17T02:11:58.195232+00:00	start	l1	amina	{"holder":"14066526bb7d03fbb4049ae1b0d0c868ea03c3d121f2db4cd7455cb6d18e7195"}	90f7cea44125a9eb7f8202a5f495775a48ebc25ee90225b24e8b0a72de885f69
30	2026-11-17T02:11:58.199481+00:00	commit	l1	amina	{"bytes":11,"holder":"314724c16ee76867afcdcaa913508e8b","media":"application/json","sha256":"fcc5391205c88395dd25c50d7065f0e3b1668fa68731bca213e9dd18c1b3404a"}	8b41780c08fc20f66fd9957f23dbb57bf36c40f2d9b0ba2c283b9d0385d7799e
31	2026-11-17T02:11:58.201351+00:00	reserve	l2	amina	{"blocks":[],"budgets":{"lab":{"cost":21736882533628098,"delta":0,"version":1}},"datasets":["lab"],"event":{"epsilon":0.03125,"schema_version":1,"type":"pure_dp"},"nonce":"836c2532b81f53cac237405b9ddd8cb0","purpose":null,"request":"b7b70522ceafe039dd61d333b41fb575e549c1a5b6b84454060234a747f6375d"}	78cb048fa471ea4cc91e6d46c26d9a4e232491c93dcab44ff1e980ef43b96184
32	2026-11-17T02:11:58.207273+00:00	start	l2	amina	{"holder":"e5e803a5db5e7db340af216fe2d54950937e53aedcd7625cf8924e65ccbc221f"}	2870b3fe5d7dc8a8dcd7ae0eeadc79d4d52ea88502f6c96b088b663efda84134
33	2026-11-17T02:11:58.208164+00:00	commit	l2	amina	{"bytes":11,"holder":"932f5db76344e83f72820d9106facbf5","media":"application/json","sha256":"7cc260453ad95417f8b700e99c59085daad35f11025934faca592b411efd33b9"}	fefbf9130ccc443aaa45e5321f5a3dcee79e84ae639f2233629db8cf5e40767f
34	2026-11-17T02:11:58.216945+00:00	reserve	w1	amina	{"blocks":["north"],"budgets":{"wards":{"cost":480022988078640289,"delta":0,"version":1}},"datasets":["wards"],"event":{"epsilon":0.25,"schema_version":1,"type":"pure_dp"},"nonce":"63e1b4005d86d8a0a3d3a54fb9c955d7","purpose":null,"request":"dc55b2549dfd4f914a6202d70cccb78c55050d6931852bb26bb101424ea9031d"}	1fd0fe07f1f3d53fda5513e0def1b6b5d995e93f8e53a0dc1fd121ae0f9abc37
35	2026-11-17T02:11:58.219932+00:00	start	w1	amina	{"holder":"5c9990601014842522be3ac1fccff4168e7dbec218acbd89b345e9f1854a4c26"}	461f47039b8fc311a5c5a33e2cc93842572104defff441191095fea9e73232cf
36	2026-11-17T02:11:58.221014+00:00	commit	w1	amina	{"bytes":11,"holder":"7de9f6ae40c5f8ae7e75bc4db6ae86a2","media":"application/json","sha256":"e00f778933e374f79f485480c5e2444c1c77a29ec4efabbfebcf5b2f4bc7a191"}	8cf3fe133abf3d11e510a9960f431907d562a31d0f3118e40358fb1721847ae5
37	2026-11-17T02:11:58.223787+00:00	reserve	w2	amina	{"blocks":["north","south"],"budgets":{"wards":{"cost":205399939634569834,"delta":0,"version":1}},"datasets":["wards"],"event":{"epsilon":0.125,"schema_version":1,"type":"pure_dp"},"nonce":"f940b052eb27ecd13f085e2bdc25e376","purpose":null,"request":"35ac7509b2323e689e68b25cec19fb0db3784b669e95035c473214b90ca520bb"}	d3077f3c389671881e68d484a9a5bee0850e23bb1f17785414e383f07af2e983
38	2026-11-17T02:11:58.225734+00:00	start	w2	amina	{"holder":"d60f7b8167e244ea96023c69ec934163ced3aa345cf655f5e62bf97ef1199f1c"}	1f9c0faba67f360b82f9156221b8b7918b080e20adf6ee0b91b84ae5015fa6df
39	2026-11-17T02:11:58.226436+00:00	commit	w2	amina	{"bytes":11,"holder":"91ba9704069e2922ca4097fcc0553ac3","media":"application/json","sha256":"8200c8ca639c4dc91688db44e3f4ebca4d3fae440941c58e3249e9277542b8ea"}	793a5b6c560b57c30137ffee5c8e1277eea104295ace27bc04e3d5297dcc874e
40	2026-11-17T02:11:58.229674+00:00	reserve	w3	amina	{"blocks":["south"],"budgets":{"wards":{"cost":26544632064754513,"delta":0,"version":1}},"datasets":["wards"],"event":{"noise_multiplier":30.0,"schema_version":1,"type":"gaussian"},"nonce":"f7a89b2cb5493375ffd35feefcf9a412","purpose":null,"request":"b116e080f00a5b88e5b5e0529b66211923ac7d0cc337aa8aa6c67a1504f29c56"}	84f236a16efaf89132e0b3131fa789108121d15aec107b8d5bbbeb97a55b1e7c
41	2026-11-17T02:11:58.233103+00:00	start	w3	amina	{"holder":"e81d6d229be6d830f1362a5ffd3bbed4b154b5db039b3254af0d89b4852631c2"}	52b1189d745e69287966e92aa0e7b2520f8a202f8b49a34d36d3cc806939b62b
42	2026-11-17T02:11:58.235373+00:00	commit	w3	amina	{"bytes":11,"holder":"7989b64cd5fbcba8ccf1fd3cf7146a98","media":"application/json","sha256":"832e73f78a020f9058d7f6bd2b54b685a59d2edf0a81fda19dd6a53a363f4713"}	bf4601472e8f1aece409ac56eecff77c1765ca8165cc4e5a5a5567e443be9a52
43	2026-11-17T02:11:58.239544+00:00	reserve	w4	amina	{"blocks":[],"budgets":{"wards":{"cost":73822039482678405,"delta":0,"version":1}},"datasets":["wards"],"event":{"epsilon":0.0625,"schema_version":1,"type":"pure_dp"},"nonce":"9bfcb7506a00db944d3bf82923a3b1a2","purpose":null,"request":"5bea7574a2262cbc0601cad4dc80eb408faeb1be78aefd9fa9bf647588832061"}	6e1fbad1828b6ec866e7c5950237e83b5f1e01ac0648a83da8e6569406cd8323
44	2026-11-17T02:11:58.244345+00:00	start	w4	amina	{"holder":"108391720235d05a2031ea512c1525142719d96cd59c3ee9a7b7f19a6eec50ae"}	7ac2f0f26c9cf56e97dec08f91252f331c4b86bf4caac9ee2f1b5c4c53aa1545
45	2026-11-17T02:11:58.251303+00:00	commit	w4	amina	{"bytes":11,"holder":"e72f1427eaa9b68cf3deccfe36224978","media":"application/json","sha256":"b9f0c7a48ddcdf13836762085fe6fba1a070ffab162d2f8a7d3fd334ca4d9e65"}	82ab8457ba02d6c92b6356f65b23afc3fd18923e19fc0dcc77e138da94e8b346
46	2026-11-17T02:11:58.256168+00:00	reserve	s1	amina	{"blocks":["north"],"budgets":{"swaps":{"cost":205399939634569834,"delta":0,"version":1}},"datasets":["swaps"],"event":{"epsilon":0.125,"schema_version":1,"type":"pure_dp"},"nonce":"5e5e98065390394323cf7da268d38283","purpose":null,"request":"a5842a64f5ffbcfb9d9dde958dafbd27b8f13513daaaeba92defad6f5e8f0aa5"}	1059b9d3c6d1d6376b2acbb2c16e41829b029133088046e48413cf47c01a52f6
47	2026-11-17T02:11:58.258063+00:00	start	s1	amina	{"holder":"9e024a73f14b36f56255fbbdb116bdf94769648148474c8579316f564d518992"}	81e5b60d2e3c4cdb271dcb71b556e85606e2559447284ef26fabd4ca49ac0464
48	2026-11-17T02:11:58.258775+00:00	commit	s1	amina	{"bytes":11,"holder":"c17e8143282e18065210d4b898e611a9","media":"application/json","sha256":"7f0c5eac79ece4b2e8ff5ccb75ad15f644d4d4d33eefeafaedd0e4a5a3fae966"}	4dffd7204de03ace227b60774d375003b316f51d369f3d843d55e6d58196f15f
49	2026-11-17T02:11:58.267562+00:00	reserve	s2	amina	{"blocks":["south"],"budgets":{"swaps":{"cost":480022988078640289,"delta":0,"version":1}},"datasets":["swaps"],"event":{"epsilon":0.25,"schema_version":1,"type":"pure_dp"},"nonce":"65cdb8458dc568ba1fe75e5cab182ccb","purpose":null,"request":"dcb2ee9432f269c0162c8798ea2c6d1e7a30e315ec6f483d45c47d3727fe369b"}	eb3d4df22afec150440692f82327353f9d4fd9b15775969db6ee8513005a73c5
50	2026-11-17T02:11:58.271186+00:00	start	s2	amina	{"holder":"bf9deee5f0dc8b6df9279e2976a0ee30c57db8fb9beb7c1ec398540cfa38c8d8"}	fb2e1e5666d8d5fcc120c9f91d614c9e2d47dfc4030422949d2935f11d41536c
51	2026-11-17T02:11:58.275275+00:00	commit	s2	amina	{"bytes":11,"holder":"91de93e29aadafa25789d5ce0584b2c9","media":"application/json","sha256":"96459bff0dfa8dab27e667da7ffd08b7abcfcf73e12721754f938fd98bfd3ebc"}	ebe3b5cff78b9a420f0995a1d3a0e727decf18d21daeea9fb4c1d544cc36609f
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
-- Name: FUNCTION append_entry(p_kind text, p_operation text, p_analyst text, p_body text); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.append_entry(p_kind text, p_operation text, p_analyst text, p_body text) FROM PUBLIC;


--
-- Name: FUNCTION charged(p_budget sitr.budget, p_due json, p_blocks text[]); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.charged(p_budget sitr.budget, p_due json, p_blocks text[]) FROM PUBLIC;


--
-- Name: FUNCTION checked(p_operation text, p_analyst text, p_body text); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.checked(p_operation text, p_analyst text, p_body text) FROM PUBLIC;


--
-- Name: FUNCTION commit(p_operation text, p_analyst text, p_holder text, p_body text, p_media text, p_content bytea, p_path text); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.commit(p_operation text, p_analyst text, p_holder text, p_body text, p_media text, p_content bytea, p_path text) FROM PUBLIC;


--
-- Name: FUNCTION identity(OUT id text, OUT schema_version integer, OUT seq bigint, OUT hash text); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.identity(OUT id text, OUT schema_version integer, OUT seq bigint, OUT hash text) FROM PUBLIC;


--
-- Name: FUNCTION is_name(p_text text); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.is_name(p_text text) FROM PUBLIC;


--
-- Name: FUNCTION is_owner(); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.is_owner() FROM PUBLIC;


--
-- Name: FUNCTION kept(p_operation text, p_analyst text); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.kept(p_operation text, p_analyst text) FROM PUBLIC;


--
-- Name: FUNCTION only_added_to(); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.only_added_to() FROM PUBLIC;


--
-- Name: FUNCTION operation(p_operation text); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.operation(p_operation text) FROM PUBLIC;


--
-- Name: FUNCTION reserve(p_operation text, p_analyst text, p_body text); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.reserve(p_operation text, p_analyst text, p_body text) FROM PUBLIC;


--
-- Name: FUNCTION start(p_operation text, p_analyst text, p_body text); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.start(p_operation text, p_analyst text, p_body text) FROM PUBLIC;


--
-- Name: FUNCTION totals(p_names text[]); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.totals(p_names text[]) FROM PUBLIC;


--
-- Name: FUNCTION whole(p_number json); Type: ACL; Schema: sitr; Owner: -
--

REVOKE ALL ON FUNCTION sitr.whole(p_number json) FROM PUBLIC;


--
-- PostgreSQL database dump complete
--


