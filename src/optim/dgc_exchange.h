#pragma once

#include "optim/dgc_layout.h"
#include "optim/optimizer.h"

namespace dgc {

// The message buffers of one rank: its own workers' messages one after another, and everyone's after the exchange; both
// also in the form in which they travel, where that is another.
class DgcExchange {
 public:
  explicit DgcExchange(const OptimizerContext& context) : context_(context) {}

  // Makes room for messages of this layout; for everyone's only where they travel. Allocates only when they are larger
  // than any before.
  void prepare(const DgcLayout& layout);

  std::byte* message(int local_worker) const;  // canonical, to be filled by dgc_compress
  std::byte* coded(int local_worker) const;    // to be filled by dgc_encode, where the layout is coded

  // Collective. All workers' canonical messages in worker order, one after another; valid until the next prepare().
  const std::byte* run(const DgcTables& tables, const StepControl* control);

 private:
  // Of both, those of the workers here and, with several ranks, of all.
  struct Messages {
    size_t bytes = 0;  // of one
    Buffer mine, all;
  };
  void make_room(Messages& messages, size_t bytes, bool travel) const;
  const std::byte* gather(const Messages& messages) const;

  OptimizerContext context_;
  bool is_coded_ = false;
  Messages canonical_, coded_;
};

}  // namespace dgc
