-- The store as it is now: an index of the raw files, which can rebuild it at any time
-- (docs/reference/database.md). An older store becomes this one by migrations/, which do not change.

CREATE TABLE system (
  id TEXT PRIMARY KEY,
  name TEXT NOT NULL,
  environment TEXT NOT NULL,
  mpi_library TEXT NOT NULL,
  mpi_standard TEXT NOT NULL,
  compiler TEXT NOT NULL,
  cpu_model TEXT NOT NULL,
  cores INTEGER NOT NULL
);

CREATE TABLE launch (
  id INTEGER PRIMARY KEY,     -- of the header line
  system TEXT NOT NULL REFERENCES system (id),
  campaign TEXT NOT NULL,
  number INTEGER NOT NULL,
  date TEXT NOT NULL,
  content TEXT NOT NULL,      -- sha256 of the raw file
  path TEXT NOT NULL,
  complete INTEGER NOT NULL,
  samples INTEGER NOT NULL,
  "commit" TEXT NOT NULL,
  problems TEXT NOT NULL,     -- JSON list of [line, message]
  header TEXT NOT NULL,       -- JSON
  decided INTEGER NOT NULL DEFAULT 0 -- whether the decisions of its campaign regard it
);

CREATE INDEX launch_campaign ON launch (system, campaign);

-- All samples of one method in one case. The blobs come last, so that a summary does not read them.
CREATE TABLE cell (
  system TEXT NOT NULL REFERENCES system (id),
  campaign TEXT NOT NULL,
  operation TEXT NOT NULL,
  pattern TEXT NOT NULL,
  procs INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  ppn INTEGER NOT NULL,
  oversubscribed INTEGER NOT NULL,
  sync TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  method TEXT NOT NULL,
  mmax INTEGER NOT NULL,
  mavg REAL NOT NULL,
  vavg_bytes REAL NOT NULL,
  vmax_bytes INTEGER NOT NULL,
  statistics TEXT NOT NULL,   -- JSON, of the last launch's plan
  launches INTEGER NOT NULL,
  n INTEGER NOT NULL,
  median_s REAL NOT NULL,
  low_s REAL NOT NULL,
  high_s REAL NOT NULL,
  p10_s REAL NOT NULL,
  p90_s REAL NOT NULL,
  above_2_medians REAL NOT NULL,
  late REAL NOT NULL,         -- share of the samples
  plan_median_s REAL NOT NULL,
  canary_median_s REAL NOT NULL,
  parts BLOB NOT NULL,        -- one tuner.domain.records.PART a launch
  rounds BLOB NOT NULL,       -- uint16 a sample
  samples BLOB NOT NULL,      -- float32 a sample, in seconds
  PRIMARY KEY (system, campaign, operation, pattern, procs, nodes, ppn, oversubscribed, sync,
               size_bytes, bytes, method)
) WITHOUT ROWID;

-- The method table of a system, as chosen from its cells.
CREATE TABLE tuned (
  system TEXT PRIMARY KEY REFERENCES system (id),
  provenance TEXT NOT NULL    -- JSON of tuner.domain.tables.Provenance
);

-- What was decided at each measured size of each degree class. With `system`, `campaign` to `bytes`
-- and a method lead to the cell behind it.
CREATE TABLE point (
  system TEXT NOT NULL REFERENCES tuned (system),
  campaign TEXT NOT NULL,
  operation TEXT NOT NULL,
  pattern TEXT NOT NULL,
  procs INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  ppn INTEGER NOT NULL,
  oversubscribed INTEGER NOT NULL,
  sync TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  mmax INTEGER NOT NULL,
  mavg REAL NOT NULL,
  method TEXT NOT NULL,
  status TEXT NOT NULL,       -- one of tuner.domain.tables.STATUSES
  challenger TEXT,            -- the method of the ratio; the selected one when it is faster
  ratio REAL,                 -- its time / time of the default
  ratio_low REAL,
  ratio_high REAL,
  launches INTEGER NOT NULL,
  ratios TEXT NOT NULL DEFAULT '{}', -- JSON: of every other method time / time of the default, low, high, error
  level REAL,                 -- the probability with which the interval holds
  may_lose REAL,              -- the most that the default may lose; NULL where nothing bounds it
  more_launches INTEGER NOT NULL DEFAULT 0, -- would settle an open point,
  more_s REAL NOT NULL DEFAULT 0,           -- in about so many seconds
  filled INTEGER NOT NULL DEFAULT 0,  -- open, with the method of other sizes or layouts
  staggered INTEGER NOT NULL DEFAULT 0 -- the challenger is faster where ranks arrive apart, too
);

CREATE INDEX point_system ON point (system, operation, nodes, ppn, mmax, mavg, bytes);

-- The rules in order of priority; NULL is unbounded. What follows `method` is the weakest of the
-- points that the rule rests on, with the range of the ratios of all.
CREATE TABLE rule (
  system TEXT NOT NULL REFERENCES tuned (system),
  rank INTEGER NOT NULL,
  operation TEXT NOT NULL,
  nodes INTEGER NOT NULL,
  ppn INTEGER NOT NULL,
  mmax_low INTEGER,
  mmax_high INTEGER,
  mavg_low REAL,
  mavg_high REAL,
  bytes_low INTEGER,
  bytes_high INTEGER,
  method TEXT NOT NULL,
  campaign TEXT NOT NULL,
  pattern TEXT NOT NULL,
  procs INTEGER NOT NULL,
  oversubscribed INTEGER NOT NULL,
  sync TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  mmax INTEGER NOT NULL,
  mavg REAL NOT NULL,
  status TEXT NOT NULL,
  challenger TEXT,
  ratio REAL,
  ratio_low REAL,
  ratio_high REAL,
  launches INTEGER NOT NULL,
  nodes_low INTEGER,          -- the layouts for which it holds; `nodes` and `ppn`, those of its point,
  nodes_high INTEGER,         -- lie outside of them where the rule is inferred
  ppn_low INTEGER,
  ppn_high INTEGER,
  ratios TEXT NOT NULL DEFAULT '{}',
  level REAL,                 -- the probability with which the interval holds
  may_lose REAL,              -- the most that the default may lose; NULL where nothing bounds it
  more_launches INTEGER NOT NULL DEFAULT 0, -- would settle an open point,
  more_s REAL NOT NULL DEFAULT 0,           -- in about so many seconds
  filled INTEGER NOT NULL DEFAULT 0,
  staggered INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (system, rank)
);

-- What a launch of spmv measured beside the whole products of a cell.
CREATE TABLE product (
  system TEXT NOT NULL REFERENCES system (id),
  campaign TEXT NOT NULL,
  operation TEXT NOT NULL,
  pattern TEXT NOT NULL,
  procs INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  ppn INTEGER NOT NULL,
  oversubscribed INTEGER NOT NULL,
  sync TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  method TEXT NOT NULL,
  launch INTEGER NOT NULL REFERENCES launch (id),
  communication_s REAL NOT NULL,  -- medians of the samples
  local_s REAL NOT NULL,
  PRIMARY KEY (system, campaign, operation, pattern, procs, nodes, ppn, oversubscribed, sync,
               size_bytes, bytes, method, launch)
) WITHOUT ROWID;

CREATE INDEX product_launch ON product (launch);

-- What a launch measured by one probe.
CREATE TABLE probe (
  system TEXT NOT NULL REFERENCES system (id),
  campaign TEXT NOT NULL,
  procs INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  ppn INTEGER NOT NULL,
  oversubscribed INTEGER NOT NULL,
  launch INTEGER NOT NULL REFERENCES launch (id),
  quantity TEXT NOT NULL,
  scope TEXT NOT NULL,
  pairs INTEGER NOT NULL,
  messages INTEGER NOT NULL,
  delay_s REAL NOT NULL,
  size_bytes INTEGER NOT NULL,
  samples BLOB NOT NULL,      -- float32 a sample, in seconds
  PRIMARY KEY (system, campaign, procs, nodes, ppn, oversubscribed, launch, quantity, scope, pairs,
               messages, delay_s, size_bytes)
) WITHOUT ROWID;

CREATE INDEX probe_launch ON probe (launch);

-- The parameters of a system, as fitted to its probes.
CREATE TABLE model (
  system TEXT PRIMARY KEY REFERENCES system (id),
  parameters TEXT NOT NULL    -- JSON as `switchpoint fit` writes it
);

-- What a launch of overlap measured of one method with one amount of computation.
CREATE TABLE overlap (
  system TEXT NOT NULL REFERENCES system (id),
  campaign TEXT NOT NULL,
  procs INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  ppn INTEGER NOT NULL,
  oversubscribed INTEGER NOT NULL,
  launch INTEGER NOT NULL REFERENCES launch (id),
  pattern TEXT NOT NULL,
  method TEXT NOT NULL,
  flops INTEGER NOT NULL,         -- of one rank
  full_flops INTEGER NOT NULL,    -- of full rows
  messages INTEGER NOT NULL,      -- of one rank to others
  message_bytes INTEGER NOT NULL, -- of the longest
  samples INTEGER NOT NULL,
  total_s REAL NOT NULL,          -- medians over the samples, from here on
  computation_s REAL NOT NULL,
  initiation_s REAL NOT NULL,
  wait_s REAL NOT NULL,
  barrier_s REAL NOT NULL,
  alone_s REAL NOT NULL,          -- the computation without communication
  PRIMARY KEY (system, campaign, procs, nodes, ppn, oversubscribed, launch, pattern, method, flops)
) WITHOUT ROWID;

CREATE INDEX overlap_launch ON overlap (launch);

-- What became of a method that a launch executed very often at one size.
CREATE TABLE soak (
  system TEXT NOT NULL REFERENCES system (id),
  campaign TEXT NOT NULL,
  procs INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  ppn INTEGER NOT NULL,
  oversubscribed INTEGER NOT NULL,
  launch INTEGER NOT NULL REFERENCES launch (id),
  operation TEXT NOT NULL,
  pattern TEXT NOT NULL,
  method TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  executions INTEGER NOT NULL,    -- complete and verified
  passed INTEGER NOT NULL,
  reason TEXT NOT NULL,           -- what was found, "" when passed
  PRIMARY KEY (system, campaign, procs, nodes, ppn, oversubscribed, launch, operation, pattern, method,
               size_bytes)
) WITHOUT ROWID;

CREATE INDEX soak_launch ON soak (launch);

-- What a campaign alone decides at each measured size, as `point`, whatever became of soaks.
CREATE TABLE decision (
  system TEXT NOT NULL REFERENCES system (id),
  campaign TEXT NOT NULL,
  operation TEXT NOT NULL,
  pattern TEXT NOT NULL,
  procs INTEGER NOT NULL,
  nodes INTEGER NOT NULL,
  ppn INTEGER NOT NULL,
  oversubscribed INTEGER NOT NULL,
  sync TEXT NOT NULL,
  size_bytes INTEGER NOT NULL,
  bytes INTEGER NOT NULL,
  mmax INTEGER NOT NULL,
  mavg REAL NOT NULL,
  method TEXT NOT NULL,
  status TEXT NOT NULL,
  challenger TEXT,
  ratio REAL,
  ratio_low REAL,
  ratio_high REAL,
  launches INTEGER NOT NULL,
  ratios TEXT NOT NULL,         -- JSON: of every other method time / time of the default, low, high, error
  level REAL,                 -- the probability with which the interval holds
  may_lose REAL,              -- the most that the default may lose; NULL where nothing bounds it
  more_launches INTEGER NOT NULL DEFAULT 0, -- would settle an open point,
  more_s REAL NOT NULL DEFAULT 0,           -- in about so many seconds
  filled INTEGER NOT NULL DEFAULT 0,  -- open, with the method of other sizes or layouts
  staggered INTEGER NOT NULL DEFAULT 0 -- the challenger is faster where ranks arrive apart, too
);

CREATE INDEX decision_campaign ON decision (system, campaign, operation);
