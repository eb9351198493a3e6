#pragma once

#include <chrono>
#include <cstdint>
#include <string>

namespace dgc {

struct ProgressState {
  int64_t step = 0;  // finished steps
  int64_t steps = 0;
  int64_t epoch = 0;  // the running epoch, counted from 1
  int64_t epochs = 0;
  double loss = 0;
  double samples_per_s = 0;
  const char* samples = "samples";  // what the samples are: "images"
};

struct ProgressStyle {
  bool bar = false;    // redraw one line at the bottom of a terminal; otherwise a plain line now and then
  bool color = false;  // false: no escape sequence but the one that erases the line
  int columns = 80;
  double seconds_between_lines = 10;
};

// Looks at stderr, TERM (dumb or unset: no bar) and NO_COLOR.
ProgressStyle detect_progress_style();

// The current width of the terminal at stderr; 80 where the width is unknown.
int terminal_columns();

// "epoch 3/30  step 1200/11700  loss 0.532  712 samples/s  14 min left". seconds_left < 0: not known yet.
std::string progress_line(const ProgressState& state, double seconds_left);

// A bar, then progress_line(), together never wider than columns - 1: a narrow terminal loses the bar first, then words
// from the end.
std::string progress_bar(const ProgressState& state, double seconds_left, const ProgressStyle& style);

// Shows the progress of a training run without slowing it: update() draws at most ten times a second, in the terminal's
// current width.
class Progress {
 public:
  explicit Progress(const ProgressStyle& style = detect_progress_style());
  ~Progress();  // removes the bar
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void update(const ProgressState& state);

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_left(const ProgressState& state) const;

  ProgressStyle style_;
  Clock::time_point first_time_, last_shown_;
  int64_t first_step_ = -1;
};

}  // namespace dgc
