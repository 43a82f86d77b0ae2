// A cache of rendered pages. When there are 600 of them half is dropped, or it just grows.
int main(int count, array(string) words)
{
  int leaks = words[1] == "leaks";
  random_seed((int)words[2]);
  float pause = 0.02 + random(20) / 1000.0;
  mapping(string:mapping) cache = ([]);
  while (1) {
    string url = sprintf("/page/%d", random(1000000000));
    array(string) parts = ({});
    for (int i = 0; i < 10 + random(20); ++i)
      parts += ({ sprintf("<p>%s %d</p>", "words " * random(20), random(100000)) });
    cache[url] = ([ "body": parts * "\n", "made": time(), "parts": parts ]);
    if (!leaks && sizeof(cache) > 600)
      foreach (sort(indices(cache))[..300], string old)
        m_delete(cache, old);
    sleep(pause);
  }
}
