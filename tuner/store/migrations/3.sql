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
