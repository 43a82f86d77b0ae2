#include "graph_case.h"
#include "optimize/rewrites.h"

namespace plimsoll {
namespace {

struct Kind {
  int64_t size = 112, channels = 64, kernel = 3, stride = 1, dilation = 1, groups = 1;
};

// The form that one convolution gets: 0, 2 or 4.
int64_t form_of(const Kind& k, const OptimizeOptions& options = {}) {
  GraphCase c;
  const int64_t pads[] = {k.dilation, k.dilation, k.dilation, k.dilation}, strides[] = {k.stride, k.stride},
                dilations[] = {k.dilation, k.dilation};
  c.output(c.node("Conv",
                  {c.input({1, k.channels, k.size, k.size}),
                   c.weights({k.channels, k.channels / k.groups, k.kernel, k.kernel})},
                  c.attrs()
                      .set("pads", std::span<const int64_t>(pads))
                      .set("strides", std::span<const int64_t>(strides))
                      .set("dilations", std::span<const int64_t>(dilations))
                      .set("group", k.groups)));
  c.ready();
  use_channels_last(c.root(), options);
  infer_graph(c.root());
  const bool changed = use_winograd(c.root(), options);
  const Attribute* form = c.find("Conv")->attribute("winograd");
  EXPECT_EQ(changed, form != nullptr);
  return form == nullptr ? 0 : form->i;
}

TEST(UseWinograd, TakesTheFormThatItsMemoryAllows) {
  EXPECT_EQ(form_of({}), 4);
  EXPECT_EQ(form_of({.size = 56}), 2);                   // the larger form would take more than the share
  EXPECT_EQ(form_of({.size = 14, .channels = 256}), 0);  // weights are most of the model
}

TEST(UseWinograd, TakesDilatedOnesWhereTapsMeetTheImage) {
  EXPECT_EQ(form_of({.dilation = 2}), 4);
  EXPECT_EQ(form_of({.dilation = 60}), 0);  // a tile of each part, mostly padding
}

TEST(UseWinograd, LeavesOtherConvolutionsAlone) {
  EXPECT_EQ(form_of({.kernel = 1}), 0);
  EXPECT_EQ(form_of({.kernel = 5}), 0);
  EXPECT_EQ(form_of({.stride = 2}), 0);
  EXPECT_EQ(form_of({.groups = 2}), 0);
  EXPECT_EQ(form_of({.size = 112, .channels = 2}), 0);  // nothing to save
}

TEST(UseWinograd, CanBeSwitchedOff) {
  OptimizeOptions options;
  options.winograd = false;
  EXPECT_EQ(form_of({}, options), 0);
}

}  // namespace
}  // namespace plimsoll
