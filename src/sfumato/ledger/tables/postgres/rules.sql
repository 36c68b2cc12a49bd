-- What every entry must keep to. Run for a new ledger, and to make a ledger of Sfumato 0.2.0 one of this version.

-- The terms of an account that composes by curves now, from its opening or since it was widened; '' of any other one.
CREATE OR REPLACE FUNCTION terms_now(which TEXT) RETURNS TEXT LANGUAGE plpgsql STABLE AS $$
BEGIN
  RETURN coalesce((SELECT terms FROM accounts WHERE name = which AND terms <> '' AND (rule = 'approx' OR EXISTS
    (SELECT 1 FROM entries WHERE account = which AND key = '(widened)' AND kind = 'open'))), '');
END $$;

-- ln of (1 - e^-x) / sum_j e^(start_j + rate_j x) at x > 0, and its slope.
CREATE OR REPLACE FUNCTION quotient(starts DOUBLE PRECISION[], rates DOUBLE PRECISION[], x DOUBLE PRECISION,
                         OUT height DOUBLE PRECISION, OUT slope DOUBLE PRECISION) LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  exponents DOUBLE PRECISION[] := '{}';
  largest DOUBLE PRECISION := '-infinity';
  part DOUBLE PRECISION;
  together DOUBLE PRECISION := 0;
  weighed DOUBLE PRECISION := 0;
BEGIN
  FOR j IN 1..cardinality(rates) LOOP
    exponents[j] := starts[j] + rates[j] * x;
    largest := greatest(largest, exponents[j]);
  END LOOP;
  FOR j IN 1..cardinality(rates) LOOP
    part := exp(greatest(exponents[j] - largest, -700));  -- below that, exp fails
    together := together + part;
    weighed := weighed + part * rates[j];
  END LOOP;
  -- Near 0 the differences of exponentials lose their digits.
  IF x < 1e-4 THEN
    height := ln(x) - x / 2 + x * x / 24;
    slope := 1 / x - 0.5 + x / 12;
  ELSE
    height := ln(1 - exp(-least(x, 700)));
    slope := 1 / (exp(least(x, 700)) - 1);
  END IF;
  height := height - largest - ln(together);
  slope := slope - weighed / together;
END $$;

-- Whether a filter may be in a state: what `Curves.fits` of privacy/composition.py says, which stays below this by a share
-- of 2^-20 of delta. The largest quotient is at most where two tangents of it meet that slope to either side.
CREATE OR REPLACE FUNCTION fits(terms TEXT, state BIGINT[]) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  said JSON := terms::json;
  most BIGINT := (said -> 'total' ->> 0)::bigint;
  aside BIGINT := (said ->> 'aside')::bigint;
  allowed DOUBLE PRECISION;
  rates DOUBLE PRECISION[] := '{}';
  starts DOUBLE PRECISION[] := '{}';
  lowest DOUBLE PRECISION := 'infinity';
  highest DOUBLE PRECISION := 0;
  x DOUBLE PRECISION;
  at RECORD;
  low DOUBLE PRECISION;
  high DOUBLE PRECISION;
  below RECORD;
  above RECORD;
BEGIN
  IF state[2] > aside THEN
    RETURN FALSE;
  ELSIF state[3] = 0 AND state[1] <= most THEN
    RETURN TRUE;
  END IF;
  allowed := ln(((said -> 'total' ->> 1)::bigint - aside) / 1e18::double precision);
  FOR j IN 1..json_array_length(said -> 'orders') LOOP
    rates[j] := (said -> 'orders' ->> (j - 1))::double precision / 1024 - 1;
    starts[j] := ln((said -> 'weights' ->> (j - 1))::double precision / 1000)
                 + rates[j] * (most / 1e9::double precision - state[j + 3] / 1099511627776::double precision);
    lowest := least(lowest, rates[j]);
    highest := greatest(highest, rates[j]);
  END LOOP;
  low := ln(1 + 1 / highest) / 2;
  high := 2 * ln(1 + 1 / lowest);
  IF state[3] = 0 THEN
    x := (state[1] - most) / 1e9::double precision;
    IF x < high THEN
      above := quotient(starts, rates, x);
      IF above.slope >= 0 THEN
        RETURN above.height <= allowed;
      END IF;
      high := x;
      low := least(low, x / 2);
    END IF;
  END IF;
  below := quotient(starts, rates, low);
  above := quotient(starts, rates, high);
  FOR turn IN 1..40 LOOP
    IF greatest(below.height, above.height) > allowed THEN
      RETURN FALSE;
    ELSIF below.height + below.slope * (above.height - below.height + above.slope * (low - high)) / (below.slope - above.slope) <= allowed THEN
      RETURN TRUE;
    END IF;
    x := sqrt(low * high);
    at := quotient(starts, rates, x);
    IF at.slope >= 0 THEN
      low := x;
      below := at;
    ELSE
      high := x;
      above := at;
    END IF;
  END LOOP;
  RETURN FALSE;
END $$;

-- Whether a curve may follow another one: its sums are those before with what is added, and fit. A filter that is not there
-- has no terms and no curve.
CREATE OR REPLACE FUNCTION allows(terms TEXT, after BIGINT[], before BIGINT[]) RETURNS BOOLEAN LANGUAGE plpgsql IMMUTABLE AS $$
DECLARE
  state BIGINT[] := '{}';
  width INT;
BEGIN
  IF coalesce(terms, '') = '' THEN
    RETURN after = '{}';
  END IF;
  width := 3 + json_array_length(terms::json -> 'orders');
  IF array_dims(after) IS DISTINCT FROM format('[1:2][1:%s]', width) THEN
    RETURN FALSE;
  END IF;
  FOR i IN 1..width LOOP
    IF after[1][i] IS NULL OR after[2][i] IS NULL OR after[1][i] < (i > 3)::int
       OR after[2][i] - after[1][i] <> coalesce(before[2][i], 0) THEN
      RETURN FALSE;
    END IF;
    state[i] := after[2][i];
  END LOOP;
  RETURN fits(terms, state);
END $$;

-- Why an entry does not fit by its event and its curves; NULL where it fits. For the custodian as for analysts.
CREATE OR REPLACE FUNCTION event_fault(added entries, curved BOOLEAN, widens BOOLEAN, unspent BOOLEAN) RETURNS TEXT LANGUAGE plpgsql STABLE AS $$
DECLARE
  fixed accounts%ROWTYPE;
  own_terms TEXT := '';
  data_terms TEXT;
  whose TEXT;
  before entries%ROWTYPE;
BEGIN
  SELECT * INTO fixed FROM accounts WHERE name = added.account;
  IF widens AND (fixed.terms = '' OR fixed.rule = 'approx' OR (added.event = '') <> unspent) THEN
    RETURN 'the account is widened once, to the terms of its opening';
  ELSIF NOT widens AND (added.event <> '') <> (curved AND added.kind = 'reserve') THEN
    RETURN 'an account by curves is charged by events, and no other one is';
  ELSIF added.event = '' THEN
    RETURN CASE WHEN added.curve || added.own_curve || added.data_curve <> '{}' THEN 'only an event has curves' END;
  END IF;
  SELECT * INTO before FROM entries WHERE account = added.account AND event <> '' ORDER BY sequence DESC LIMIT 1;
  IF NOT allows(fixed.terms, added.curve, before.curve) THEN
    RETURN 'the account cannot pay';
  ELSIF widens THEN
    RETURN CASE WHEN added.spent_first <> added.curve[1][1] OR added.spent_second <> added.curve[1][2]
      THEN 'the balance does not follow from the entry before' END;
  ELSIF added.cost_first <> added.curve[1][1] OR added.cost_second <> added.curve[1][2] THEN
    RETURN 'the cost is not that of the event';
  END IF;
  IF added.spender <> '' THEN
    SELECT note::json ->> 'terms' INTO own_terms FROM entries
      WHERE account = added.account AND spender = added.spender AND spender <> '' AND kind = 'cap' ORDER BY sequence DESC LIMIT 1;
    SELECT * INTO before FROM entries
      WHERE account = added.account AND spender = added.spender AND spender <> '' AND event <> '' ORDER BY sequence DESC LIMIT 1;
    IF own_terms IS NULL THEN
      RETURN 'the spender cannot pay';
    END IF;
  END IF;
  IF NOT allows(own_terms, added.own_curve, before.own_curve) THEN
    RETURN 'the spender cannot pay';
  END IF;
  SELECT b.data, c.terms INTO whose, data_terms FROM bindings b JOIN ceilings c ON c.data = b.data
    WHERE b.account = added.account AND b.data <> '';
  SELECT e.* INTO before FROM entries e JOIN bindings b ON b.account = e.account
    WHERE b.data = whose AND e.event <> '' ORDER BY e.sequence DESC LIMIT 1;
  RETURN CASE WHEN NOT allows(data_terms, added.data_curve, before.data_curve) THEN 'the data set cannot pay' END;
END $$;

-- An entry with its texts as they are in JSON.
CREATE OR REPLACE FUNCTION escaped(added entries) RETURNS entries LANGUAGE plpgsql IMMUTABLE AS $$
BEGIN
  added.account := escaped(added.account);
  added.kind := escaped(added.kind);
  added.time := escaped(added.time);
  added.key := escaped(added.key);
  added.digest := escaped(added.digest);
  added.note := escaped(added.note);
  added.payload_hash := escaped(added.payload_hash);
  added.until := escaped(added.until);
  added.holder := escaped(added.holder);
  added.previous := escaped(added.previous);
  added.spender := escaped(added.spender);
  added.event := escaped(added.event);
  RETURN added;
END $$;

-- Why an entry that has a spender does not fit; NULL where it fits.
CREATE OR REPLACE FUNCTION spender_fault(added entries) RETURNS TEXT LANGUAGE plpgsql STABLE AS $$
DECLARE
  before entries%ROWTYPE;
  capped JSON;
BEGIN
  SELECT * INTO before FROM entries WHERE account = added.account AND spender = added.spender AND spender <> ''
    ORDER BY sequence DESC LIMIT 1;
  SELECT note::json -> 'ceiling' INTO capped FROM entries
    WHERE account = added.account AND spender = added.spender AND spender <> '' AND kind = 'cap' ORDER BY sequence DESC LIMIT 1;
  RETURN CASE
    WHEN added.kind NOT IN ('reserve', 'cap') THEN 'only a charge or a ceiling has a spender'
    WHEN added.own_first - added.cost_first <> coalesce(before.own_first, 0)
      OR added.own_second - added.cost_second <> coalesce(before.own_second, 0)
      THEN 'the sum of the spender does not follow from the entry before'
    WHEN added.kind = 'reserve' AND added.event = ''
      AND (capped IS NULL OR added.own_first > (capped ->> 0)::numeric OR added.own_second > (capped ->> 1)::numeric)
      THEN 'the spender cannot pay'
  END;
END $$;

-- What is added must fit: this holds even against a fault in the program above. An entry without a number is numbered,
-- balanced and chained here.
CREATE OR REPLACE FUNCTION entries_fit() RETURNS trigger LANGUAGE plpgsql AS $$
DECLARE
  was RECORD;
  taken BOOLEAN;
  shared BOOLEAN;
  reserved BOOLEAN;
  stored BOOLEAN;
  form TEXT := '["sfumato-ledger-1",%s,"%s","%s","%s","%s","%s",[%s,%s],"%s","%s",[%s,%s],"%s","%s","%s"';
  signs entries%ROWTYPE;
  linked TEXT;
  wrong TEXT;
  widens BOOLEAN := NEW.kind = 'open' AND NEW.key = '(widened)';
  curved BOOLEAN := FALSE;
BEGIN
  -- What the rules compare with: the last entry of all, that of the account, and what the key has been through.
  SELECT coalesce(h.sequence, 0) AS sequence, coalesce(h.hash, '') AS hash, a.name, a.total_first, a.total_second, a.rule, a.terms,
         coalesce(b.spent_first, 0) AS spent_first, coalesce(b.spent_second, 0) AS spent_second
    INTO was
    FROM (SELECT 1) one
    LEFT JOIN (SELECT sequence, hash FROM entries ORDER BY sequence DESC LIMIT 1) h ON TRUE
    LEFT JOIN (SELECT spent_first, spent_second FROM entries WHERE account = NEW.account ORDER BY sequence DESC LIMIT 1) b ON TRUE
    LEFT JOIN accounts a ON a.name = NEW.account;
  IF NEW.kind IN ('open', 'reserve') THEN
    taken := EXISTS (SELECT 1 FROM entries WHERE account = NEW.account AND key = NEW.key);
    IF NEW.kind = 'reserve' AND NEW.spender = '' THEN
      shared := EXISTS (SELECT 1 FROM entries WHERE account = NEW.account AND kind = 'cap' AND spender <> '');
    END IF;
  ELSIF NEW.kind NOT IN ('bind', 'cap') THEN
    SELECT bool_or(kind = 'reserve' AND digest = NEW.digest), bool_or(kind = 'store') INTO reserved, stored
      FROM entries WHERE account = NEW.account AND key = NEW.key;
  END IF;
  IF was.terms <> '' THEN
    curved := widens OR terms_now(NEW.account) <> '';
  END IF;
  IF NEW.sequence IS NULL THEN
    NEW.sequence := was.sequence + 1;
    NEW.previous := was.hash;
    NEW.spent_first := was.spent_first + NEW.cost_first;
    NEW.spent_second := was.spent_second + NEW.cost_second;
  END IF;
  -- The hash: SHA-256 of all other fields, as ledger/entries.py writes them. All printed signs of ASCII but two are written as
  -- they are, and hardly any entry has another one.
  signs := NEW;
  IF NEW.account || NEW.kind || NEW.time || NEW.key || NEW.digest || NEW.note || NEW.payload_hash || NEW.until
     || NEW.holder || NEW.previous || NEW.spender || NEW.event COLLATE "C" ~ '[^] !#-[^-~]' THEN
    signs := escaped(NEW);
  END IF;
  form := format(form, signs.sequence, signs.account, signs.kind, signs.time, signs.key, signs.digest, signs.cost_first,
                 signs.cost_second, signs.note, signs.payload_hash, signs.spent_first, signs.spent_second, signs.until,
                 signs.holder, signs.previous);
  IF NEW.event <> '' THEN
    form := format('%s,"%s",[%s,%s],"%s",%s,%s,%s', overlay(form placing '2' from 18), signs.spender,
                   signs.own_first, signs.own_second, signs.event, array_to_json(NEW.curve), array_to_json(NEW.own_curve),
                   array_to_json(NEW.data_curve));
  ELSIF NEW.spender <> '' THEN
    form := format('%s,"%s",[%s,%s]', form, signs.spender, signs.own_first, signs.own_second);
  END IF;
  linked := encode(sha256(convert_to(form || ']', 'UTF8')), 'hex');
  IF NEW.hash IS NULL THEN
    NEW.hash := linked;
  END IF;
  wrong := CASE
    WHEN NEW.kind NOT IN ('open', 'bind', 'cap', 'reserve', 'resume', 'abandon', 'store', 'hand')
      THEN 'there is no such kind of entry'
    WHEN NEW.cost_first < 0 OR NEW.cost_second < 0
      THEN 'a cost is less than nothing'
    WHEN NEW.sequence <> was.sequence + 1 OR NEW.previous <> was.hash
      THEN 'the entry is not the next of the chain'
    WHEN NOT widens
      AND (NEW.spent_first - NEW.cost_first <> was.spent_first OR NEW.spent_second - NEW.cost_second <> was.spent_second)
      THEN 'the balance does not follow from the entry before'
    WHEN was.name IS NULL
      THEN 'the account is not there'
    WHEN NOT curved AND (NEW.spent_first > was.total_first OR NEW.spent_second > was.total_second)
      THEN 'the account cannot pay'
    WHEN NEW.kind <> 'reserve' AND (NEW.cost_first <> 0 OR NEW.cost_second <> 0)
      THEN 'only a reservation costs'
    WHEN NEW.kind IN ('open', 'reserve') AND taken
      THEN 'the key is taken'
    WHEN NEW.kind NOT IN ('open', 'bind', 'cap', 'reserve') AND reserved IS NOT TRUE
      THEN 'the key was never reserved'
    WHEN NEW.kind = 'hand' AND NOT stored
      THEN 'there is nothing to hand out'
    WHEN NEW.kind IN ('resume', 'abandon', 'store') AND stored
      THEN 'the key is answered'
    WHEN NEW.hash <> linked
      THEN 'the hash is not that of the entry'
    WHEN NEW.spender <> ''
      THEN spender_fault(NEW)
    WHEN NEW.own_first <> 0 OR NEW.own_second <> 0
      THEN 'the sum of the spender does not follow from the entry before'
    WHEN shared
      THEN 'the account is charged by its spenders only'
  END;
  IF wrong IS NULL AND (curved OR widens OR NEW.event <> '' OR NEW.curve || NEW.own_curve || NEW.data_curve <> '{}') THEN
    wrong := event_fault(NEW, curved, widens, was.spent_first + was.spent_second = 0);
  END IF;
  IF wrong IS NOT NULL THEN
    RAISE EXCEPTION '%', wrong USING ERRCODE = 'integrity_constraint_violation';
  END IF;
  UPDATE reached SET sequence = NEW.sequence;
  RETURN NEW;
END $$;
DROP TRIGGER IF EXISTS entries_fit ON entries;
CREATE TRIGGER entries_fit BEFORE INSERT ON entries FOR EACH ROW EXECUTE FUNCTION entries_fit();
