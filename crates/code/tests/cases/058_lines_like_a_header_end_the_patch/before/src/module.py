    a
-- a
