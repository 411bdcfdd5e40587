"""The tables of PostgreSQL and the function `search`, as statements; see `postgres`."""

from __future__ import annotations

from math import ceil, sqrt

from ragbench.corpus import searched
from ragbench.extras.engines import tables
from ragbench.extras.engines.plan import SearchPlan
from ragbench.extras.engines.tables import COLUMNS, units
from ragbench.extras.engines.words import CJK, OUTER

EXACT = 10_000
"""Up to so many chunks all vectors are compared."""
_MOST_DIMENSIONS = 2_000  # of a graph of pgvector over single-precision vectors

WORDS = "COALESCE((SELECT collname FROM pg_collation WHERE collname = 'pg_c_utf8'), 'default')"
"""The collation by which letters are known and made small, whatever that of the database is; from version 17 on."""


VECTORS = (
    "SELECT nspname FROM pg_extension JOIN pg_namespace ON pg_namespace.oid = extnamespace WHERE extname = 'vector'"
)
"""The schema where pgvector was made."""


def identifier(name: str) -> str:
    """A name between quotes."""
    return '"' + name.replace('"', '""') + '"'


_TABLES = """
CREATE TABLE about (key text PRIMARY KEY, value text NOT NULL);
CREATE TABLE files (name text PRIMARY KEY, content bytea NOT NULL);
CREATE TABLE documents (id bigint NOT NULL, docno text NOT NULL, path text NOT NULL, title text NOT NULL,
  modified double precision NOT NULL, metadata jsonb NOT NULL, digest text NOT NULL);
CREATE TABLE chunks (id bigint NOT NULL, document bigint NOT NULL, chunk_id text COLLATE "C" NOT NULL, headings jsonb
  NOT NULL, heading_level int NOT NULL, start_line int NOT NULL, end_line int NOT NULL, text text NOT NULL,
  passage text COLLATE "C" NOT NULL);
CREATE TABLE forms (form text COLLATE "C" NOT NULL, terms text COLLATE "C" NOT NULL);
"""
_KEYS = """
ALTER TABLE documents ADD PRIMARY KEY (id), ADD UNIQUE (docno);
CREATE INDEX ON documents USING gin (metadata jsonb_path_ops);
ALTER TABLE chunks ADD PRIMARY KEY (id), ADD UNIQUE (chunk_id),
  ADD FOREIGN KEY (document) REFERENCES documents;
CREATE INDEX ON chunks (document);
CREATE INDEX ON chunks (passage);
ALTER TABLE forms ADD PRIMARY KEY (form);
"""


def schema(plan: SearchPlan, dimension: int, partitions: int = 1) -> str:
    """The statements that make empty tables, without keys; vectors and words in `partitions` by the hash of their unit.

    A statement over the whole table asks them all, and an index of it is one in each.
    """

    def ending(table: str, column: str) -> str:
        if partitions == 1:
            return ";\n"
        parts = (
            f"CREATE TABLE {table}_{n} PARTITION OF {table} FOR VALUES WITH (MODULUS {partitions}, REMAINDER {n});\n"
            for n in range(partitions)
        )
        return f" PARTITION BY HASH ({column});\n{''.join(parts)}"

    statements = _TABLES
    for unit in units(plan):
        statements += (
            f'CREATE TABLE {unit}_words (term text COLLATE "C" NOT NULL, unit bigint NOT NULL, tf real NOT NULL,\n'
            f"  length int NOT NULL, fields int NOT NULL){ending(f'{unit}_words', 'unit')}"
            f'CREATE TABLE {unit}_terms (term text COLLATE "C" PRIMARY KEY, idf double precision NOT NULL, mean double '
            "precision NOT NULL);\n"
        )
    if "dense" in plan.depths:
        statements += f"CREATE TABLE vectors (rowid bigint NOT NULL, vector vector({dimension}) NOT NULL)"
        statements += ending("vectors", "rowid")
        statements += "ALTER TABLE vectors ALTER vector SET STORAGE PLAIN;\n" if dimension <= _MOST_DIMENSIONS else ""
    return statements


def keys(plan: SearchPlan, collation: str, partitions: int = 1) -> str:
    """The statements for the keys and the function, after the tables are full; `collation` is that of words."""
    statements = _KEYS
    for unit in units(plan):
        statements += (
            f"ALTER TABLE {unit}_words ADD PRIMARY KEY (term, unit) INCLUDE (tf, length);\n"
            f"CREATE INDEX ON {unit}_words (unit);\n"
        )
    if "dense" in plan.depths:
        statements += "ALTER TABLE vectors ADD PRIMARY KEY (rowid);\n"
    return (
        statements
        + function(plan, collation, partitions)
        + "".join(f"ANALYZE {table};\n" for table in tables.tables(plan))
    )


GRAPH = f"""
DO $$ BEGIN
  IF to_regclass('vectors_graph') IS NULL AND (SELECT count(*) FROM vectors) > {EXACT}
     AND (SELECT vector_dims(vector) FROM vectors LIMIT 1) <= {_MOST_DIMENSIONS} THEN
    CREATE INDEX vectors_graph ON vectors USING hnsw (vector vector_cosine_ops);
  END IF;
END $$;
"""


def function(plan: SearchPlan, collation: str, partitions: int = 1) -> str:
    """The statements that make and describe the function; `collation` is the collation of the database for words."""
    dense = "dense" in plan.depths
    free = "(filters IS NULL AND chunk_ids IS NULL)"
    outer = OUTER.replace("'", "''")
    ignored = "".join(sign if sign.isascii() else f"\\U{ord(sign):08x}" for sign in searched.IGNORED.pattern)
    scored = "SELECT rowid, 1 - (vector <=> query_vector) FROM vectors WHERE"
    by_letters = f"COLLATE {identifier(collation)}"
    dialect = tables.Dialect(
        (
            "allowed (chunk) AS MATERIALIZED (\n"
            "  SELECT chunks.id FROM chunks JOIN documents ON documents.id = document WHERE NOT "
            f"{free}\n    AND (chunk_ids IS NULL OR chunk_id = ANY (chunk_ids)) AND (filters IS NULL OR metadata @> "
            "filters))",
            "runs (run) AS (\n"
            f"  SELECT btrim(run, '{outer}')\n"
            f"  FROM normalize(regexp_replace(query, '{ignored}', '', 'g')) AS shown,\n"
            f"    regexp_split_to_table(shown {by_letters}, '\\s+') AS run)",
            "analysed (run, terms) AS MATERIALIZED (\n"
            "  SELECT run, COALESCE(as_is.terms, in_lower_case.terms) FROM runs\n"
            '  LEFT JOIN forms AS as_is ON as_is.form = run COLLATE "C"\n'
            f'  LEFT JOIN forms AS in_lower_case ON in_lower_case.form = lower(run {by_letters}) COLLATE "C")',
            "parted (part, terms) AS MATERIALIZED (\n"
            "  SELECT part[1], forms.terms FROM analysed,\n"
            f"    regexp_matches(lower(run {by_letters}), '[{CJK}]+|(?:(?![{CJK}])[[:alnum:]])+', 'g') AS part\n"
            '    LEFT JOIN forms ON form = part[1] COLLATE "C" WHERE analysed.terms IS NULL)',
            "asked (term, n) AS MATERIALIZED (\n"
            "  SELECT term, count(*) FROM (\n"
            "    SELECT string_to_table(terms, ' ') AS term FROM analysed\n"
            "    UNION ALL SELECT string_to_table(terms, ' ') FROM parted\n"
            "    UNION ALL SELECT string_to_table(forms.terms, ' ')\n"
            "    FROM parted, generate_series(1, char_length(part) - 1) AS place, forms\n"
            f"    WHERE parted.terms IS NULL AND part ~ '^[{CJK}]'\n"
            '      AND form = substr(part, place, 2) COLLATE "C") AS found\n'
            "  WHERE term <> '' GROUP BY term)",
        ),
        free,
        lambda depth: (
            f"({scored} {free}\n   ORDER BY vector <=> query_vector LIMIT {depth})\n"
            f"  UNION ALL ({scored} NOT {free} AND rowid IN (SELECT chunk FROM allowed)\n"
            f"   ORDER BY (vector <=> query_vector) + 0, rowid LIMIT {depth})"
        ),
    )
    columns = ["chunk_id text", "score double precision", *(f"{source} double precision" for source in plan.depths)]
    settings = ["jit = off", "enable_hashjoin = off", "enable_mergejoin = off"]
    settings += [f"hnsw.ef_search = {_candidates(plan.depths['dense'], partitions)}"] if dense else []
    parameters = "query text, " + ("query_vector vector, " if dense else "")
    return (
        f"CREATE FUNCTION search({parameters}filters jsonb DEFAULT NULL, chunk_ids text[] DEFAULT NULL)\n"
        f"RETURNS TABLE ({', '.join(columns)}) LANGUAGE sql STABLE\n"
        + "".join(f"SET {setting}\n" for setting in settings)
        + f"BEGIN ATOMIC\n{tables.statement(plan, dialect)};\nEND;\n"
        "COMMENT ON FUNCTION search IS 'The chunks that a measured search of ragbench finds, best first: the fused "
        "score, and the score in every source. filters: what the metadata of a document must contain; chunk_ids: the "
        "chunks that may be found.';\n"
    )


def _candidates(depth: int, partitions: int) -> int:
    """How many candidates a graph is asked for: twice what it has of the nearest `depth`, three deviations included."""
    share = depth / partitions
    return min(1_000, 2 * (depth if partitions == 1 else ceil(min(depth, share + 3 * sqrt(share)))))


def digest(plan: SearchPlan) -> str:
    """Return the digest as an expression: all tables in full, except vectors and postings, which are counted."""
    counted = [table for table in tables.tables(plan) if table == "vectors" or table.endswith("_words")]
    hashed = 'COALESCE(sum(hashtextextended(t::text COLLATE "C", 0)::numeric), 0)'
    parts = [
        f"SELECT '{table} ' || count(*) || ' ' || {hashed} AS part FROM {table} AS t"
        + " WHERE key <> 'digest'" * (table == "about")
        for table in tables.tables(plan)
        if table not in counted
    ]
    parts += [f"SELECT '{table} ' || count(*) FROM {table}" for table in counted]
    return (
        f"(SELECT md5(string_agg(part, ' ' ORDER BY part COLLATE \"C\")) FROM ({' UNION ALL '.join(parts)}) AS parts)"
    )


def begin(name: str, plan: SearchPlan) -> str:
    """The statements with which a load begins; a second one waits for the first."""
    return (
        ("CREATE EXTENSION IF NOT EXISTS vector;\n" if "dense" in plan.depths else "")
        + f"SELECT pg_advisory_xact_lock(hashtextextended('ragbench {name}', 0));\n"
        + f'CREATE SCHEMA "{draft(name)}";\n'
    )


def swap(name: str) -> str:
    """The statement that puts the loaded schema in the place of the earlier one, with the same rights to read."""
    new, old = draft(name), f"{name}__old"
    dropped = ", ".join(f"{old}.{table}" for table in COLUMNS)
    return f"""
SET LOCAL lock_timeout = '60s';
DO $$ DECLARE reader text; BEGIN
  IF to_regnamespace('{name}') IS NULL THEN
    ALTER SCHEMA {new} RENAME TO {name};
    RETURN;
  END IF;
  IF to_regclass('{name}.about') IS NULL OR to_regclass('{name}.chunks') IS NULL THEN
    RAISE invalid_schema_name USING MESSAGE = 'the schema {name} holds something else';
  END IF;
  FOR reader IN SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END
      FROM pg_namespace, aclexplode(nspacl) WHERE nspname = '{name}' AND privilege_type = 'USAGE' LOOP
    EXECUTE 'GRANT USAGE ON SCHEMA {new} TO ' || reader;
  END LOOP;
  FOR reader IN SELECT CASE grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(grantee)) END
      FROM pg_class, aclexplode(relacl) WHERE oid = '{name}.chunks'::regclass AND privilege_type = 'SELECT' LOOP
    EXECUTE 'GRANT SELECT ON ALL TABLES IN SCHEMA {new} TO ' || reader;
  END LOOP;
  ALTER SCHEMA {name} RENAME TO {old};
  ALTER SCHEMA {new} RENAME TO {name};
  DROP FUNCTION {old}.search;
  DROP TABLE IF EXISTS {dropped};
  DROP SCHEMA {old};
END $$;
"""


def draft(name: str) -> str:
    """The schema that is being loaded."""
    return f"{name}__new"
