-- 1. A sequence
SELECT s.id, e.id FROM events s JOIN events e ON s.host = e.host AND s.type = 'Start' AND e.type = 'Stop'
  AND e.upper > s.lower AND e.lower - s.upper < 20;

-- 2. A comparison
SELECT c.id, d.id FROM events c JOIN events d ON c.type = 'Load' AND d.type = 'Load' AND d.value > c.value
  AND d.upper > c.lower AND d.lower - c.upper < 20;

-- 3. A negation
SELECT c.id, e.id FROM events c JOIN events e ON c.type = 'Load' AND e.type = 'Stop' AND e.upper > c.lower AND e.lower - c.upper < 20
WHERE NOT EXISTS (SELECT 1 FROM events n WHERE n.type = 'Alarm' AND n.lower > c.upper AND n.upper < e.lower)
-- leaves out what is impossible; what lies between c and e in some worlds alone has no place in it;

-- 4. One or more
WITH RECURSIVE chain AS (
  SELECT id AS s, []::BIGINT[] AS c, lower AS t, upper AS latest FROM events WHERE type = 'Start'
  UNION ALL SELECT s, list_append(c, l.id), greatest(t + 1, lower), latest FROM chain
  JOIN events l ON l.type = 'Load' AND l.upper > t AND NOT list_contains(c, l.id))
SELECT s, c, e.id FROM chain JOIN events e ON e.type = 'Stop' AND len(c) > 0 AND e.upper > t AND e.lower - latest < 20
-- t is the earliest time of the last load; what the window excludes between the first and the last is not asked;

-- 5. A rise
WITH RECURSIVE chain AS (
  SELECT [id] AS c, lower AS t, upper AS latest, value AS last FROM events WHERE type = 'Load'
  UNION ALL SELECT list_append(c, l.id), greatest(t + 1, lower), latest, value FROM chain
  JOIN events l ON l.type = 'Load' AND l.upper > t AND l.value > last)
SELECT c, e.id FROM chain JOIN events e ON e.type = 'Stop' AND len(c) > 1 AND e.upper > t AND e.lower - latest < 20;

-- 6. Any order
SELECT c.id, n.id FROM events c JOIN events n ON c.type = 'Load' AND n.type = 'Alarm' AND n.lower - c.upper < 3 AND c.lower - n.upper < 3;

-- 7. Either
SELECT s.id, c.id FROM events s JOIN events c ON s.type = 'Start' AND (c.type = 'Alarm' OR c.type = 'Load' AND c.value > 80)
  AND c.upper > s.lower AND c.lower - s.upper < 20;

-- 8. The next one alone
SELECT s.id, c.id FROM events s JOIN events c ON s.type = 'Start' AND c.type = 'Load' AND c.upper > s.lower AND c.lower - s.upper < 20
WHERE NOT EXISTS (SELECT 1 FROM events x WHERE x.lower > s.upper AND x.upper < c.lower);

-- 9. An option
SELECT s.id, n.id, e.id FROM events s JOIN events e ON s.type = 'Start' AND e.type = 'Stop' AND e.upper > s.lower AND e.lower - s.upper < 20
JOIN events n ON n.type = 'Alarm' AND n.upper > s.lower AND n.lower < e.upper
UNION ALL SELECT s.id, NULL, e.id FROM events s JOIN events e ON s.type = 'Start' AND e.type = 'Stop' AND e.upper > s.lower AND e.lower - s.upper < 20;

-- 10. A time between two events
SELECT c.id, e.id FROM events c JOIN events e ON c.type = 'Load' AND e.type = 'Stop' AND e.upper > c.lower AND e.lower - c.upper <= 4;
