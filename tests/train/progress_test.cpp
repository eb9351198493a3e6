#include "train/progress.h"

#include <catch2/catch.hpp>

namespace dgc {
namespace {

const ProgressState kState = {
    .step = 1200, .steps = 11700, .epoch = 4, .epochs = 30, .loss = 0.532, .samples_per_s = 712.3};

int64_t columns(const std::string& text) {
  int64_t count = 0;
  for (const char c : text) count += (c & 0xc0) != 0x80;
  return count;
}

}  // namespace

TEST_CASE("a progress line says where training is") {
  CHECK(progress_line(kState, 840) == "epoch 4/30  step 1200/11700  loss 0.532  712 samples/s  14 min left");
  CHECK(progress_line(kState, -1) == "epoch 4/30  step 1200/11700  loss 0.532  712 samples/s");
}

TEST_CASE("a bar fits its terminal, and the bar goes before the words do") {
  const auto width = GENERATE(range(1, 140));
  CAPTURE(width);
  const auto text = progress_bar(kState, 840, {.bar = true, .color = false, .columns = width});
  CHECK(columns(text) <= width - 1);
  CHECK((text.find("━") != std::string::npos) == (width >= 80));  // 69 columns of words, 2 of space, 8 of bar
  if (width > 11) CHECK(text.find("epoch 4/30") != std::string::npos);
}

TEST_CASE("a bar is as full as the run is done") {
  auto full_cells = [](int64_t step) {
    ProgressState state = kState;
    state.step = step;
    const auto text = progress_bar(state, 0, {.bar = true, .color = false, .columns = 200});
    int cells = 0;
    for (size_t at = text.find("━"); at != std::string::npos; at = text.find("━", at + 1)) ++cells;
    return cells;
  };
  CHECK(full_cells(0) == 0);
  CHECK(full_cells(11700 / 2) == 15);
  CHECK(full_cells(11700) == 30);
  CHECK(full_cells(99999) == 30);
}

TEST_CASE("colour is used only where it is wanted") {
  CHECK(progress_bar(kState, 0, {.bar = true, .color = true, .columns = 120}).find('\x1b') != std::string::npos);
  CHECK(progress_bar(kState, 0, {.bar = true, .color = false, .columns = 120}).find('\x1b') == std::string::npos);
  CHECK(progress_line(kState, 0).find('\x1b') == std::string::npos);
}

}  // namespace dgc
