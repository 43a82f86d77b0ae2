"""Reports that Celery's worker makes at times that its beat tells it; nobody asks for their results. They are not stored, or stored in
the worker's memory."""
import os
import random

from celery import Celery

form, seed = os.environ["FORM"], int(os.environ["SEED"])
for folder in ("queue", "done"):
    os.makedirs(folder, exist_ok=True)
app = Celery("celery_reports", broker="filesystem://", backend="cache+memory://")
app.conf.update(
    broker_transport_options={"data_folder_in": "queue", "data_folder_out": "queue", "data_folder_processed": "done", "store_processed": False,
                              "polling_interval": 0.1},
    task_ignore_result=form == "steady", beat_schedule_filename="schedule", worker_redirect_stdouts=False, beat_max_loop_interval=1,
    beat_schedule={f"report {i}": {"task": "celery_reports.report", "schedule": 0.8 + 0.2 * seed + i / 10, "args": (i,)} for i in range(5)})


@app.task
def report(kind):
    return [{"kind": kind, "row": i, "sum": random.random(), "text": "words " * random.randrange(5, 20)} for i in range(random.randrange(150, 500))]
