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
