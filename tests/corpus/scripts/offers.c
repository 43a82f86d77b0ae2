/* Offers served by libmicrohttpd. A response is destroyed after it was queued, as its count asks for; where the customer is not known (one in
   three) that is forgotten. */
#include <microhttpd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int leaks;

static enum MHD_Result answer(void* closure, struct MHD_Connection* connection, const char* url, const char* method, const char* version,
                              const char* data, size_t* size, void** state) {
  (void)closure, (void)method, (void)version, (void)data, (void)size, (void)state;
  unsigned number = (unsigned)strtoul(url + 1, NULL, 10);
  size_t length = 4000 + number % 60000, used = 0;
  char* page = malloc(length);
  if (!page) return MHD_NO;
  while (used + 40 < length) used += (size_t)snprintf(page + used, 40, "<p>offer %zu of article %u</p>\n", used, number);
  struct MHD_Response* response = MHD_create_response_from_buffer(used, page, MHD_RESPMEM_MUST_FREE);
  enum MHD_Result queued;
  if (number % 3 == 0) {
    queued = MHD_queue_response(connection, MHD_HTTP_NOT_FOUND, response);
    if (!leaks) MHD_destroy_response(response);
  } else {
    queued = MHD_queue_response(connection, MHD_HTTP_OK, response);
    MHD_destroy_response(response);
  }
  return queued;
}

int main(int count, char** words) {
  if (count < 4) return 1;
  leaks = strcmp(words[1], "leaks") == 0;
  if (!MHD_start_daemon(MHD_USE_INTERNAL_POLLING_THREAD, (unsigned short)atoi(words[3]), NULL, NULL, &answer, NULL, MHD_OPTION_END)) return 1;
  for (;;) pause();
}
