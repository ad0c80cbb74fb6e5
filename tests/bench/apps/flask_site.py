# SPDX-License-Identifier: Apache-2.0
"""A site with Flask, for gunicorn: templates, JSON, a database with functions and an order of our own in Python, regular
expressions with a callback."""
import re
import sqlite3

import flask

app = flask.Flask(__name__)
PAGE = """<html><body><h1>{{ title|title }}</h1><table>
{% for row in rows %}<tr class="{{ loop.cycle('odd', 'even') }}"><td>{{ row.name|e }}</td>
<td>{{ '%.2f' % row.value }}</td><td>{{ row.tags|sort|join(', ') }}</td></tr>{% endfor %}
</table></body></html>"""
ROWS = [{"name": f"row <{n}>", "value": n / 7, "tags": [f"t{n % 5}", f"a{n % 3}", "z"]} for n in range(60)]
WORDS = re.compile(r"[a-z]+")


def open_database():
    database = sqlite3.connect(":memory:")
    database.create_function("score", 2, lambda name, value: len(WORDS.findall(name)) * value)
    database.create_collation("backwards", lambda one, other: (one < other) - (one > other))
    database.execute("create table item (name text, value real)")
    database.executemany("insert into item values (?, ?)", [(f"item {n * 37 % 101}", n / 3) for n in range(200)])
    return database


DATABASE = open_database()


@app.route("/page")
def page():
    return flask.render_template_string(PAGE, title="all rows", rows=ROWS)


@app.route("/json", methods=["GET", "POST"])
def rows():
    return flask.jsonify(rows=ROWS, echo=flask.request.get_json(silent=True))


@app.route("/items")
def items():
    query = "select name, score(name, value) from item order by name collate backwards limit 50"
    return flask.jsonify(DATABASE.execute(query).fetchall())


@app.route("/words")
def words():
    text = " ".join(row["name"] for row in ROWS)
    return WORDS.sub(lambda match: match.group().upper(), text * 5)
