"""Flask's own server; the leak is a function registered anew by every request, with what it closes over."""
import sys

from flask import Flask, jsonify, render_template_string

form, port = sys.argv[1], int(sys.argv[2])
app = Flask(__name__)
hooks = []


@app.route("/<path:name>")
def page(name):
    rows = [f"{name} {i} " + "x" * 80 for i in range(30)]
    hooks.append(lambda: len(rows))
    if form == "steady":
        hooks.pop()
    text = render_template_string("{% for row in rows %}<li>{{ row }}{% endfor %}", rows=rows)
    return jsonify(text=text, n=hooks[-1]() if hooks else 0)


app.run("127.0.0.1", port, threaded=True)
