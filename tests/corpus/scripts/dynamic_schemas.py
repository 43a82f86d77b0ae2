"""Orders that are checked by a schema made for the customer's own columns. marshmallow's registry keeps each class under its name, which
has the number of the order in it; or the class says register = False."""
import random
import sys
import time

from marshmallow import Schema, fields

form, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
pause = 0.12 + 0.03 * seed
number = 0
while True:
    number += 1
    columns = {f"column_{i}": fields.List(fields.Integer()) if chance.random() < 0.3 else fields.String(required=True, metadata={"title": "words " * chance.randrange(5, 40)})
               for i in range(chance.randrange(4, 20))}
    if form == "steady":
        columns["Meta"] = type("Meta", (), {"register": False})
    schema = type(f"Order{number}Schema", (Schema,), columns)()
    order = {name: [chance.randrange(100)] if isinstance(field, fields.List) else "text" for name, field in schema.fields.items()}
    assert schema.dumps(schema.load(order))
    time.sleep(pause * chance.uniform(0.5, 1.5))
