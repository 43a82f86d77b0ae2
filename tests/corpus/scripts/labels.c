/* Labels drawn by Pango and Cairo. Where the address does not fit, the label is given up, and its layout with it, or without it. */
#include <pango/pangocairo.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int main(int count, char** words) {
  if (count < 3) return 1;
  int leaks = strcmp(words[1], "leaks") == 0, seed = atoi(words[2]);
  srand((unsigned)seed);
  cairo_surface_t* label = cairo_image_surface_create(CAIRO_FORMAT_ARGB32, 300, 120);
  cairo_t* pen = cairo_create(label);
  PangoFontDescription* font = pango_font_description_from_string("Sans 9");
  for (;;) {
    char text[4000];
    size_t used = 0;
    for (int lines = 2 + rand() % 30; lines > 0; --lines)
      used += (size_t)snprintf(text + used, sizeof text - used, "Customer %d, street %d, a town with a long name\n", rand() % 1000, rand() % 1000);
    PangoLayout* layout = pango_cairo_create_layout(pen);
    int height = 0;
    pango_layout_set_font_description(layout, font);
    pango_layout_set_text(layout, text, (int)used);
    pango_layout_get_pixel_size(layout, NULL, &height);
    if (height > 250) {
      if (!leaks) g_object_unref(layout);
    } else {
      cairo_set_source_rgb(pen, 1, 1, 1);
      cairo_paint(pen);
      cairo_set_source_rgb(pen, 0, 0, 0);
      pango_cairo_show_layout(pen, layout);
      g_object_unref(layout);
    }
    usleep((useconds_t)(60000 + 15000 * seed + rand() % 40000));
  }
}
