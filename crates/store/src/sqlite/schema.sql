-- The journal is the truth; every other table is its shadow, except boot and lease.
CREATE TABLE journal (
    seq INTEGER PRIMARY KEY,
    wall INTEGER NOT NULL,
    claim TEXT,
    key TEXT,
    fence INTEGER NOT NULL,
    data TEXT NOT NULL
) STRICT;
CREATE INDEX journal_claim ON journal (claim, seq) WHERE claim IS NOT NULL;
CREATE INDEX journal_key ON journal (key) WHERE key IS NOT NULL;

-- The boots of the machine that the store has met; an instant's era counts them.
CREATE TABLE boot (id TEXT PRIMARY KEY, era INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- The emergency stop, and the fence below which no epoch mints; the last fence stands in the journal's last row,
-- which is written anyway.
CREATE TABLE state (one INTEGER PRIMARY KEY CHECK (one = 1), fence INTEGER NOT NULL, halt TEXT NOT NULL) STRICT;
INSERT INTO state VALUES (1, 0, '{"standing":null,"stretches":[]}');

CREATE TABLE claim (
    id TEXT PRIMARY KEY,
    live INTEGER NOT NULL,
    human INTEGER NOT NULL,
    process TEXT,
    work TEXT NOT NULL,
    data TEXT NOT NULL
) STRICT;
CREATE INDEX claim_process ON claim (process, live, human, id) WHERE process IS NOT NULL;

-- By what else a claim is found: its token, its parent, its host's session. One tree for all of them, since every
-- command reads the whole schema, and every tree that a claim stands in is one more page to write.
CREATE TABLE mark (mark TEXT NOT NULL, claim TEXT NOT NULL, PRIMARY KEY (mark, claim)) STRICT, WITHOUT ROWID;

-- The entries of live claims and of uncleared work, by their literal components with case folded.
CREATE TABLE entry (
    prefix TEXT NOT NULL,
    work INTEGER NOT NULL,
    owner TEXT NOT NULL,
    entry TEXT NOT NULL,
    PRIMARY KEY (prefix, work, owner, entry)
) STRICT, WITHOUT ROWID;

CREATE TABLE lock (path TEXT PRIMARY KEY, holder TEXT NOT NULL, data TEXT NOT NULL) STRICT, WITHOUT ROWID;
CREATE INDEX lock_holder ON lock (holder);

-- What a gate is about is the id of a claim or of a run.
CREATE TABLE gate (
    id TEXT PRIMARY KEY,
    about TEXT NOT NULL,
    pending INTEGER NOT NULL,
    deferred INTEGER NOT NULL,
    data TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX gate_about ON gate (about);
CREATE INDEX gate_open ON gate (id) WHERE pending OR deferred;

CREATE TABLE signal (
    id TEXT PRIMARY KEY,
    addressee TEXT NOT NULL,
    open INTEGER NOT NULL,
    blocks INTEGER NOT NULL,
    data TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX signal_open ON signal (addressee, id) WHERE open;
CREATE INDEX signal_blocks ON signal (id) WHERE blocks;

CREATE TABLE work (key TEXT PRIMARY KEY, data TEXT NOT NULL) STRICT, WITHOUT ROWID;

CREATE TABLE run (
    id TEXT PRIMARY KEY,
    plan TEXT NOT NULL,
    live INTEGER NOT NULL,
    data TEXT NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX run_plan ON run (plan);
CREATE INDEX run_live ON run (live) WHERE live;

CREATE TABLE phase (
    run TEXT NOT NULL,
    id TEXT NOT NULL,
    position INTEGER NOT NULL,
    busy INTEGER NOT NULL,
    data TEXT NOT NULL,
    PRIMARY KEY (run, id)
) STRICT, WITHOUT ROWID;
CREATE INDEX phase_busy ON phase (run) WHERE busy;

CREATE TABLE green (key TEXT PRIMARY KEY, total INTEGER NOT NULL) STRICT, WITHOUT ROWID;

-- Leases are no part of the journal: a rebuild leaves them out, and they are expired.
CREATE TABLE lease (
    id TEXT PRIMARY KEY,
    fence INTEGER NOT NULL,
    touched_era INTEGER NOT NULL,
    touched_tick INTEGER NOT NULL,
    touched_wall INTEGER NOT NULL,
    era INTEGER NOT NULL,
    tick INTEGER NOT NULL,
    wall INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
