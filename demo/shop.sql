-- A day of an online shop, in memory: some tens of megabytes, most of them rarely read, and look-ups that
-- favour few customers and products. Nothing is random: every run executes the same statements on the same
-- data.
--
--     sqlite3 :memory: < demo/shop.sql
PRAGMA cache_size = -200000;

CREATE TABLE customer (id INTEGER PRIMARY KEY, name TEXT, region INTEGER);
CREATE TABLE product (id INTEGER PRIMARY KEY, title TEXT, price INTEGER);
CREATE TABLE purchase (customer INTEGER, id INTEGER, product INTEGER, amount INTEGER, PRIMARY KEY (customer, id))
    WITHOUT ROWID;
CREATE TABLE receipt (id INTEGER PRIMARY KEY, text TEXT);

-- `n * 2654435761 % m` scatters; the product of several such numbers, divided by m, makes small ones
-- frequent.
INSERT INTO customer
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
    SELECT i, 'customer number ' || i, i * 40503 % 50 FROM n;
INSERT INTO product
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 60000)
    SELECT i, 'a product for every household, in a handy box, also as a gift, number ' || i, i % 9973 FROM n;
INSERT INTO receipt
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 240000)
    SELECT i, 'paid by card, thank you for your visit, goods can be returned within a month: receipt number ' || i FROM n;
INSERT INTO purchase
    SELECT i % 60000 + 1, i, 1 + (i * 2246822519 % 60000) * (i * 69069 % 60000) / 60000 * (i * 48271 % 60000) / 60000, 1 + i % 5
    FROM (WITH RECURSIVE n(i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < 239999) SELECT i FROM n)
    ORDER BY 1, 2;

-- The day's business: a customer's earlier purchases and their prices.
SELECT 'look-ups', count(*), sum(amount * price)
FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 200000)
      SELECT 1 + (i * 2654435761 % 60000) * (i * 40503 % 60000) / 60000 * (i * 69069 % 60000) / 60000 AS who FROM n)
JOIN customer ON customer.id = who
JOIN purchase ON purchase.customer = who
JOIN product ON product.id = purchase.product
WHERE customer.name > '' AND product.title > '';

-- The evening's report reads every purchase, and a customer asks for old receipts.
SELECT 'best sellers', product, sum(amount) FROM purchase GROUP BY product ORDER BY 3 DESC LIMIT 3;
SELECT 'receipts', count(*) FROM receipt WHERE id % 1000 = 0 AND text LIKE '%card%';
