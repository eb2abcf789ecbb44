-- What the trace words.parquet was recorded from: see golden.rs.
CREATE TABLE word (id INTEGER PRIMARY KEY, text TEXT, uses INTEGER);
WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
INSERT INTO word SELECT i, 'the word with the number ' || i || ', and what it means to those who use it', 0 FROM n;
SELECT sum(length(text))
FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 15000)
      SELECT 1 + (i * 2654435761 % 9000) * (i * 40503 % 9000) / 9000 * (i * 69069 % 9000) / 9000 AS k FROM n)
JOIN word ON word.id = k;
UPDATE word SET uses = uses + 1 WHERE id % 7 = 0;
SELECT sum(length(text))
FROM (WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 9000)
      SELECT 9000 - (i * 2654435761 % 9000) * (i * 40503 % 9000) / 9000 * (i * 69069 % 9000) / 9000 AS k FROM n)
JOIN word ON word.id = k;
