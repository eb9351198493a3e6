#include "run/progress.h"

#include <pty.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <catch.hpp>

namespace dgc {
namespace {

const ProgressState kState = {
    .step = 1200, .steps = 11700, .epoch = 4, .epochs = 30, .loss = 0.532, .samples_per_s = 712.3};

int64_t columns(const std::string& text) {
  int64_t count = 0;
  for (const char c : text) count += (c & 0xc0) != 0x80;
  return count;
}

// A window whose terminal is standard error as long as this lives.
class Window {
 public:
  Window() : there_(openpty(&window_, &terminal_, nullptr, nullptr, nullptr) == 0), stderr_(dup(STDERR_FILENO)) {
    if (there_) dup2(terminal_, STDERR_FILENO);
  }
  ~Window() {
    dup2(stderr_, STDERR_FILENO);
    for (const int file : {stderr_, window_, terminal_}) close(file);
  }
  Window(const Window&) = delete;
  Window& operator=(const Window&) = delete;

  bool there() const { return there_; }
  void resize(int columns) const {
    const winsize size{24, static_cast<unsigned short>(columns), 0, 0};
    ioctl(window_, TIOCSWINSZ, &size);
  }
  std::string read() const {  // what has been written since
    std::string text(4096, '\0');
    const ssize_t got = ::read(window_, text.data(), text.size());
    text.resize(got > 0 ? static_cast<size_t>(got) : 0);
    return text;
  }

 private:
  int window_ = -1, terminal_ = -1;
  bool there_;
  int stderr_;
};

}  // namespace

TEST_CASE("a bar is as wide as its window is by then") {
  const Window window;
  if (!window.there()) {
    WARN("skipped: this machine has no pseudo-terminals (/dev/pts)");
    return;
  }
  const std::string erase = "\r\x1b[K";
  Progress progress({.bar = true, .color = false});
  ProgressState last = kState;
  last.step = last.steps;  // is always shown
  for (const int columns : {120, 90, 30, 100}) {
    window.resize(columns);
    progress.update(last);
    CHECK(window.read() == erase + progress_bar(last, -1, {.bar = true, .color = false, .columns = columns}));
  }
}

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
