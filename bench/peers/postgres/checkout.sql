-- A buyer's limit, a fence and three products: all or nothing.
\set buyer random(1, 100000)
\set a random(1, 100000)
\set b random(1, 100000)
\set c random(1, 100000)
SELECT checkout(:buyer, 1, :a, :b, :c);
