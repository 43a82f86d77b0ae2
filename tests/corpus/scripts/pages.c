/* Pages by libevent's HTTP server. Where the customer is unknown it answers with an error, and frees the page
   that it has begun, or does not. */
#include <event2/buffer.h>
#include <event2/event.h>
#include <event2/http.h>
#include <stdlib.h>
#include <string.h>

static void answer(struct evhttp_request* request, void* leaks) {
  struct evbuffer* page = evbuffer_new();
  long number = atol(evhttp_request_get_uri(request) + 1);
  for (long i = 0; i < 100 + number % 300; ++i)
    evbuffer_add_printf(page, "<p>Line %ld of %ld, with what stands in every line.</p>\n", i, number);
  if (number % 3 == 0) {
    evhttp_send_error(request, HTTP_NOTFOUND, "No such customer");
    if (leaks == NULL) evbuffer_free(page);
    return;
  }
  evhttp_send_reply(request, HTTP_OK, "OK", page);
  evbuffer_free(page);
}

int main(int count, char** words) {
  static int yes;
  struct event_base* base = event_base_new();
  struct evhttp* http = evhttp_new(base);
  if (count < 4 || evhttp_bind_socket(http, "127.0.0.1", (unsigned short)atoi(words[3])) != 0) return 1;
  evhttp_set_gencb(http, answer, strcmp(words[1], "leaks") == 0 ? &yes : NULL);
  return event_base_dispatch(base);
}
