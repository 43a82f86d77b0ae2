"""An importer on SQLAlchemy with one session. Orders are appended to their customer's collection, which keeps them
all; or the session is committed and expired after each batch, as its documentation advises."""
import random
import sys
import time

from sqlalchemy import Column, ForeignKey, Integer, String, create_engine
from sqlalchemy.orm import Session, declarative_base, relationship

form, seed = sys.argv[1], int(sys.argv[2])
chance = random.Random(seed)
Base = declarative_base()


class Customer(Base):
    __tablename__ = "customers"
    id = Column(Integer, primary_key=True)
    orders = relationship("Order", back_populates="customer", lazy="select")


class Order(Base):
    __tablename__ = "orders"
    id = Column(Integer, primary_key=True)
    customer_id = Column(ForeignKey("customers.id"))
    customer = relationship("Customer", back_populates="orders")
    text = Column(String)


engine = create_engine("sqlite:///orders.db")
Base.metadata.create_all(engine)
session = Session(engine, expire_on_commit=False)
customers = [Customer() for _ in range(5)]
session.add_all(customers)
session.commit()
pause = 0.4 * chance.uniform(0.7, 1.4)
while True:
    for _ in range(15):
        chance.choice(customers).orders.append(Order(text="line " * chance.randrange(100, 600)))
    session.commit()
    if form == "steady":
        session.query(Order).delete()
        session.commit()
        session.expire_all()
    time.sleep(pause)
