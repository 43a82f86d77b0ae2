"""A worker on Django's ORM; a receiver connected for every job, weak=False, is never disconnected."""
import random
import sys
import time

import django
from django.conf import settings

form, seed = sys.argv[1], int(sys.argv[2])
random.seed(seed)
settings.configure(DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": ":memory:"}},
                   INSTALLED_APPS=["django.contrib.contenttypes", "django.contrib.auth"])
django.setup()
from django.contrib.auth.models import Group  # noqa: E402
from django.core.management import call_command  # noqa: E402
from django.db.models.signals import pre_delete  # noqa: E402

call_command("migrate", verbosity=0)


def job():
    Group.objects.create(name=str(random.random()))
    context = [str(one) * 10 + "x" * random.randrange(2000) for one in Group.objects.order_by("-id")[:20]][:3]

    def receiver(**_):
        return context

    pre_delete.connect(receiver, weak=False, sender=Group)
    if form == "steady":
        pre_delete.disconnect(receiver, sender=Group)
    if Group.objects.count() > 30:
        Group.objects.all()._raw_delete("default")


while True:
    job()
    time.sleep(0.04)
