#include "config/keys.h"

#include "config/objects.h"

namespace dgc {

bool Key::applies_to(const std::string& type) const {
  return types.empty() || std::find(types.begin(), types.end(), type) != types.end();
}

// The key's function only looks where the value lies.
Json Key::get(const void* owner) const { return to_json(find(const_cast<void*>(owner))); }

void Key::set(void* owner, const Json& checked) const { from_json(find(owner), checked); }

void describe(Key& key, bool) { key.kind = Kind::boolean; }

void describe(Key& key, int64_t) {
  key.kind = Kind::integer;
  key.maximum = 2147483647;  // so that every integer fits an int
}

void describe(Key& key, uint64_t) {
  key.kind = Kind::integer;
  key.minimum = 0;
  key.maximum = 9007199254740991;  // 2^53 - 1: exact in every JSON reader
}

void describe(Key& key, double) { key.kind = Kind::number; }
void describe(Key& key, const std::string&) { key.kind = Kind::text; }

void describe(Key& key, const std::vector<int64_t>&) {
  key.kind = Kind::integers;
  key.maximum = 2147483647;
}

void describe(Key& key, const std::vector<double>&) { key.kind = Kind::numbers; }
void describe(Key& key, const std::vector<std::string>&) { key.kind = Kind::texts; }
void describe(Key& key, const std::vector<LayerOptions>&) { key.kind = Kind::layers; }

Json layers_to_json(const std::vector<LayerOptions>& layers) {
  Json list = Json::array();
  for (const LayerOptions& layer : layers) list.push_back(write_object(layer_keys(), &layer));
  return list;
}

std::vector<LayerOptions> layers_from_json(const Json& list) {
  std::vector<LayerOptions> layers(list.size());
  for (size_t i = 0; i < layers.size(); ++i) read_object(layer_keys(), list[i], &layers[i]);
  return layers;
}

const Keys& config_keys() {
  static const Keys all = [] {
    Keys keys;
    Section<Config> top(keys);
    top.add("name", &Config::name, "Names the run. Default: the file's name without `.json`")
        .matches("[A-Za-z0-9][A-Za-z0-9._+-]*", "letters, digits and . _ + -, and a letter or digit first");
    top.add("seed", &Config::seed, "Decides every random number: weights, order of samples, augmentation, dropout");
    top.add("device", &Config::device, "`cpu`, `cuda:N`, or `auto`: the first GPU if there is one")
        .matches("auto|cpu|cuda:[0-9]{1,3}", "a GPU has a number: cuda:0")
        .free_on_resume();
    top.add(
        "precision", &Config::precision,
        "Of activations and of products; weights, their gradients and the optimizer are always fp32. `tf32`: fp32 "
        "data, products on tensor cores. `fp16` scales the loss. All but `fp32` need a GPU, or, for `bf16`, a "
        "processor with AVX-512 BF16 or AMX, which keeps activations in fp32 and rounds what convolutions and matrix "
        "products read");
    top.add("conv_plans", &Config::conv_plans,
            "File of plans that `dgc bench convolutions` has found fastest on this GPU; a convolution that it lacks, "
            "and all without a file, take the first plan of cuDNN's list. Other plans, other last digits: a run is "
            "resumed with the file that it began with. A processor has no plans to choose from")
        .is_path()
        .free_on_resume();
    top.add("workers_per_rank", &Config::workers_per_rank,
            "Workers that a rank runs, sharing its weights, one after another or as `workers_at_once` says. "
            "Workers = ranks x this")
        .at_least(1)
        .at_most(4096)
        .free_on_resume();
    top.add("workers_at_once", &Config::workers_at_once,
            "So many of a rank's workers compute at the same time, each with activations of its own: the same bits, "
            "more memory. 0: on a GPU as many as a quarter of its free memory has room for, otherwise one. On a "
            "processor each of them takes `threads`, so set that to fewer")
        .at_least(0)
        .at_most(4096)
        .free_on_resume();
    top.add("ranks", &Config::ranks,
            "Ranks, as threads of this process, at most 1024; with several processes as many as a launcher has started "
            "(docs/launch.md)")
        .at_least(1)
        .at_most(65536)
        .free_on_resume();
    top.add("threads", &Config::threads,
            "Compute threads per rank; 0: the cores of the machine, or as many as its container may use, shared by the "
            "ranks. Another number rounds sums otherwise, so a run is resumed with as many")
        .at_least(0)
        .at_most(1024)
        .free_on_resume();
    add_model_keys(keys);
    add_data_keys(keys);
    add_training_keys(keys);
    add_optimizer_keys(keys);
    add_learning_rate_keys(keys);
    add_exchange_keys(keys);
    add_checkpoint_keys(keys);
    top.add("output", &Config::output, "Folder of the run; `{name}` stands for its name").matches(".+");
    top.add("check_replicas_every", &Config::check_replicas_every,
            "Steps between comparisons of all replicas' weights; 0: never")
        .at_least(0)
        .free_on_resume();
    return keys;
  }();
  return all;
}

}  // namespace dgc
