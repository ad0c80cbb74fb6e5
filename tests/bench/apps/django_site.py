# SPDX-License-Identifier: Apache-2.0
"""A site with Django in one file, for gunicorn with threads: its ORM on SQLite, templates, forms."""
import django
from django.conf import settings
from django.core.wsgi import get_wsgi_application

settings.configure(
    ALLOWED_HOSTS=["*"], DEBUG=False, ROOT_URLCONF=__name__, SECRET_KEY="of a benchmark", USE_TZ=True,
    DATABASES={"default": {"ENGINE": "django.db.backends.sqlite3", "NAME": "file:bench?mode=memory&cache=shared"}},
    TEMPLATES=[{"BACKEND": "django.template.backends.django.DjangoTemplates"}],
    MIDDLEWARE=["django.middleware.common.CommonMiddleware", "django.middleware.csrf.CsrfViewMiddleware"])
django.setup()

from django import forms  # noqa: E402  models and forms need the settings
from django.db import connection, models  # noqa: E402
from django.http import HttpResponse, JsonResponse  # noqa: E402
from django.template import Context, Engine  # noqa: E402
from django.urls import path  # noqa: E402


class Author(models.Model):
    name = models.CharField(max_length=40)

    class Meta:
        app_label = "bench"


class Book(models.Model):
    title = models.CharField(max_length=80)
    price = models.DecimalField(max_digits=7, decimal_places=2)
    author = models.ForeignKey(Author, on_delete=models.CASCADE)

    class Meta:
        app_label = "bench"


class BookForm(forms.Form):
    title = forms.CharField(max_length=80)
    price = forms.DecimalField(min_value=0)
    pages = forms.IntegerField(required=False)


PAGE = Engine().from_string("""<ul>{% for book in books %}<li>{{ book.title|upper }}: {{ book.price|floatformat:2 }}
{{ book.author.name|truncatechars:12 }} {% if book.price > 50 %}dear{% endif %}</li>{% endfor %}</ul>""")


def fill():
    with connection.schema_editor() as editor:
        editor.create_model(Author)
        editor.create_model(Book)
    authors = [Author.objects.create(name=f"author number {n}") for n in range(10)]
    Book.objects.bulk_create(Book(title=f"book {n}", price=n, author=authors[n % 10]) for n in range(100))


def books(request):
    found = Book.objects.select_related("author").filter(price__gte=20).order_by("-price")
    return HttpResponse(PAGE.render(Context({"books": found})))


def prices(request):
    found = Book.objects.values("author__name").annotate(total=models.Sum("price"), count=models.Count("id"))
    return JsonResponse({"authors": list(found)})


def form(request):
    wrong = [BookForm({"title": "t" * n, "price": str(50 - n), "pages": "x" * (n % 2)}).errors for n in range(60, 100, 4)]
    return JsonResponse({"errors": wrong})


urlpatterns = [path("books", books), path("prices", prices), path("form", form)]
KEPT = connection.connect()  # the database lives as long as a connection to it
fill()
application = get_wsgi_application()
