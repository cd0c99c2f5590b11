-- A rule holds for these layouts, nodes and processes per node; `nodes` and `ppn` are those of its
-- point, outside of them where the rule is interpolated.
ALTER TABLE rule ADD COLUMN nodes_low INTEGER;
ALTER TABLE rule ADD COLUMN nodes_high INTEGER;
ALTER TABLE rule ADD COLUMN ppn_low INTEGER;
ALTER TABLE rule ADD COLUMN ppn_high INTEGER;
UPDATE rule SET nodes_low = nodes, nodes_high = nodes, ppn_low = ppn, ppn_high = ppn;
