#include "train/redistribute.h"

#include <vector>

namespace dgc {

void load_share(const Checkpoint& checkpoint, const ShareArgs& args, const Arena& arena) {
  const ParamLayout& layout = arena.layout();
  const auto host = make_cpu_device();
  std::vector<std::vector<double>> sums;
  sums.reserve(static_cast<size_t>(layout.size()));
  for (int i = 0; i < layout.size(); ++i) sums.emplace_back(static_cast<size_t>(layout.numel(i)));
  std::vector<float> values;
  for (int64_t worker = 0; worker < args.from; worker += args.group) {
    const SafetensorsFile file = checkpoint.open(worker_file(worker));
    for (int i = 0; i < layout.size(); ++i) {
      std::vector<double>& sum = sums[static_cast<size_t>(i)];
      values.resize(sum.size());
      file.load(args.state + "." + layout.spec(i).name, {values.data(), layout.spec(i).shape}, *host);
      for (size_t e = 0; e < sum.size(); ++e) sum[e] += static_cast<double>(values[e]);
    }
  }
  const int64_t groups = args.to / args.group;
  for (int i = 0; i < layout.size(); ++i) {
    values.clear();
    for (const double sum : sums[static_cast<size_t>(i)]) {
      values.push_back(static_cast<float>(sum / static_cast<double>(groups)));
    }
    arena.device().copy_in(arena.view(i).data, values.data(), values.size() * sizeof(float));
  }
}

}  // namespace dgc
