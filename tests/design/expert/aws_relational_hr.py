"""Published: AWS's relational example (employees, departments, customers, orders) in one table."""

from datetime import date, datetime
from typing import Literal

from stator import (
    Bundle2,
    Design,
    Entity,
    Query,
    creates,
    distinct,
    find,
    ident,
    per,
    read,
    share,
    together,
    unique,
    updates,
    write,
)

SOURCE = (
    "AWS developer guide, relational data in one table. From memory; confidence middling: the "
    "published "
    "table overloads two indexes (the sort key turned into a partition, and a data "
    "attribute), 15 patterns."
)


class Employee(Entity):
    employee_id: str = ident()
    name: str
    department: str
    job_title: str
    city: str
    hired_on: date
    login: str = unique()


class JobHistory(Entity):
    employee_id: str = ident()
    started_on: date = ident()
    job_title: str


class Customer(Entity):
    customer_id: str = ident()
    name: str
    account_rep: str


class Order(Entity):
    order_id: str = ident()
    customer_id: str
    account_rep: str
    placed_at: datetime
    status: Literal["open", "shipped"]
    cents: int


class OrderLine(Entity):
    order_id: str = ident()
    product_id: str = ident()
    quantity: int
    placed_at: datetime


class Stock(Entity):
    product_id: str = ident()
    warehouse_id: str = ident()
    quantity: int


@read(rps=50)
def employee(employee_id: str) -> Query[Employee]:
    return find(Employee).where(Employee.employee_id == employee_id)


@read(rps=5)
def employee_by_login(login: str) -> Query[Employee]:
    return find(Employee).where(Employee.login == login)


@read(rps=5, returns=1)
def employees_named(name: str) -> Query[Employee]:
    return find(Employee).where(Employee.name == name)


@read(rps=2, returns=30)
def employees_of_department(department: str, job_title: str) -> Query[Employee]:
    return find(Employee).where(Employee.department == department, Employee.job_title == job_title)


@read(rps=1, returns=80)
def employees_in_city(city: str, hired_since: date) -> Query[Employee]:
    return find(Employee).where(Employee.city == city, Employee.hired_on >= hired_since)


@read(rps=3, returns=5)
def employee_with_history(employee_id: str) -> Bundle2[Employee, JobHistory]:
    return together(Employee, JobHistory).where(Employee.employee_id == employee_id)


@read(rps=30)
def customer(customer_id: str) -> Query[Customer]:
    return find(Customer).where(Customer.customer_id == customer_id)


@read(rps=4, returns=40)
def customers_of_rep(account_rep: str) -> Query[Customer]:
    return find(Customer).where(Customer.account_rep == account_rep)


@read(rps=20, returns=15)
def orders_of_customer(customer_id: str, since: datetime) -> Query[Order]:
    return (
        find(Order)
        .where(Order.customer_id == customer_id, Order.placed_at >= since)
        .newest_first(Order.placed_at)
    )


@read(rps=2, returns=25)
def open_orders_of_rep(account_rep: str) -> Query[Order]:
    return (
        find(Order)
        .where(Order.account_rep == account_rep, Order.status == "open")
        .oldest_first(Order.placed_at)
    )


@read(rps=30, returns=6)
def order_with_lines(order_id: str) -> Bundle2[Order, OrderLine]:
    return together(Order, OrderLine).where(Order.order_id == order_id)


@read(rps=3, returns=60)
def sales_of_product(product_id: str, since: datetime) -> Query[OrderLine]:
    return (
        find(OrderLine)
        .where(OrderLine.product_id == product_id, OrderLine.placed_at >= since)
        .newest_first(OrderLine.placed_at)
    )


@read(rps=30, returns=4)
def stock_of(product_id: str) -> Query[Stock]:
    return find(Stock).where(Stock.product_id == product_id)


@read(rps=1, returns=3_000)
def stock_in(warehouse_id: str) -> Query[Stock]:
    return find(Stock).where(Stock.warehouse_id == warehouse_id)


@write(rps=10)
def place_order() -> object:
    return creates(Order), creates(OrderLine, times=5), updates(Stock.quantity, times=5)


@write(rps=10)
def ship() -> object:
    return updates(Order.status)


@write(rps=0.01)
def promote() -> object:
    return updates(Employee.job_title), creates(JobHistory)


design = Design(
    "aws_relational_hr",
    [Employee, JobHistory, Customer, Order, OrderLine, Stock],
    [
        employee,
        employee_by_login,
        employees_named,
        employees_of_department,
        employees_in_city,
        employee_with_history,
        customer,
        customers_of_rep,
        orders_of_customer,
        open_orders_of_rep,
        order_with_lines,
        sales_of_product,
        stock_of,
        stock_in,
        place_order,
        ship,
        promote,
    ],
    facts=[
        distinct(Employee.department, values=150),
        distinct(Employee.job_title, values=300),
        distinct(Employee.department, Employee.job_title, values=1_700),
        distinct(Employee.city, values=60),
        distinct(Stock.warehouse_id, values=20),
        share(Order.status == "open", 0.01),
        distinct(Order.account_rep, values=10_000),
    ],
    volumes={
        Employee: 50_000,
        JobHistory: per(Employee, 4),
        Customer: 400_000,
        Order: per(Customer, 60),
        OrderLine: per(Order, 5),
        Stock: 60_000,
    },
    sizes={
        Employee: 500,
        JobHistory: 120,
        Customer: 400,
        Order: 300,
        OrderLine: 130,
        Stock: 110,
    },
)

EXPECTED = {
    "max_indexes": 3,
    "published_indexes": 2,
    "entities": {
        "Employee": {"partition": ["employee_id"], "sort": []},
        "JobHistory": {"partition": ["employee_id"], "sort": ["started_on"]},
        "Customer": {"partition": ["customer_id"], "sort": []},
        "Order": {"partition": ["order_id"], "sort": []},
        "OrderLine": {"partition": ["order_id"], "sort": ["product_id"]},
        "Stock": {"partition": ["product_id"], "sort": ["warehouse_id"]},
    },
    "patterns": {
        "employee": {"by": "base"},
        "employee_by_login": {
            "by": "guard",
            "or": [{"by": "index", "partition": ["login"], "sort": []}],
        },
        "employees_named": {"by": "index", "partition": ["name"], "sort": []},
        "employees_of_department": {
            "by": "index",
            "partition": ["department", "job_title"],
            "sort": [],
            "or": [{"by": "index", "partition": ["department"], "sort": ["job_title"]}],
        },
        "employees_in_city": {"by": "index", "partition": ["city"], "sort": ["hired_on"]},
        "employee_with_history": {"by": "base"},
        "customer": {"by": "base"},
        "customers_of_rep": {"by": "index", "partition": ["account_rep"], "sort": []},
        "orders_of_customer": {"by": "index", "partition": ["customer_id"], "sort": ["placed_at"]},
        "open_orders_of_rep": {
            "by": "index",
            "partition": ["account_rep", "status"],
            "sort": ["placed_at"],
            "sparse": "status",
            "or": [
                {
                    "by": "index",
                    "partition": ["account_rep"],
                    "sort": ["placed_at"],
                    "sparse": "status",
                }
            ],
        },
        "order_with_lines": {"by": "base"},
        "sales_of_product": {"by": "index", "partition": ["product_id"], "sort": ["placed_at"]},
        "stock_of": {"by": "base"},
        "stock_in": {"by": "index", "partition": ["warehouse_id"], "sort": []},
    },
}
WHY = {
    "max_indexes": "Nine lists of five entities, but no entity has more than three: "
    "overloaded indexes "
    "hold all of them. AWS gets by with two because it writes an employee as several items.",
}
