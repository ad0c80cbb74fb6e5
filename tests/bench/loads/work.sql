-- SPDX-License-Identifier: Apache-2.0
-- Tables, indexes, joins, sorting and text functions in memory; run again and again.
CREATE TABLE item(id INTEGER PRIMARY KEY, name TEXT, price REAL, shelf INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
INSERT INTO item SELECT i, printf('item %08d', i * 7919 % 199999), i % 977 * 1.5, i % 331 FROM n;
CREATE INDEX by_name ON item(name);
CREATE INDEX by_shelf ON item(shelf, price);
SELECT count(*), max(total) FROM
	(SELECT a.shelf, sum(b.price) AS total FROM item a JOIN item b ON b.shelf = a.shelf AND b.price > 1400
	 WHERE a.id % 10 = 0 GROUP BY a.shelf);
SELECT count(DISTINCT substr(name, 6)), sum(name LIKE '%77%'), max(upper(name) || hex(name)) FROM item;
SELECT sum(r) FROM (SELECT row_number() OVER (PARTITION BY shelf ORDER BY name DESC) AS r FROM item);
UPDATE item SET name = replace(name, '7', 'seven') WHERE id % 3 = 0;
DELETE FROM item WHERE name GLOB '*seven*';
