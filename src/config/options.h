#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "data/images/options.h"
#include "data/speech/options.h"
#include "layers/batch_norm.h"
#include "layers/conv2d.h"
#include "layers/cross_entropy.h"
#include "layers/dropout.h"
#include "layers/linear.h"
#include "layers/lrn.h"
#include "layers/pool.h"
#include "models/alexnet.h"
#include "models/deep_speech.h"
#include "models/lstm_lm.h"
#include "models/resnet.h"
#include "optim/dgc/dgc.h"
#include "optim/lr_schedule.h"
#include "optim/sparsity_schedule.h"
#include "tensor/errors.h"

// What a config file says, as plain values, in the structs of the code that reads them. The defaults of their fields
// ARE the defaults of the JSON keys that are bound to them; ranges and meanings are said with the keys, and
// configs/README.md is made from both. A Config that load_config() returned is complete: every range is checked and
// every model/optimizer "auto" is decided, except `device`, `threads`, `workers_at_once` and those of `exchange`, which
// depend on the machine.
namespace dgc {

enum class Precision { fp32, tf32, bf16, fp16 };

enum class DataKind { images, text, speech };

// One entry of a layer list: the name of a row of layer_types(), and the options of all types. Options of other types
// keep their defaults.
struct LayerOptions {
  std::string type = "relu";
  Conv2dOptions conv2d;
  BatchNormOptions batch_norm;
  PoolOptions pool;  // max_pool, avg_pool
  DropoutOptions dropout;
  LrnOptions lrn;
  LinearOptions linear;
  bool operator==(const LayerOptions&) const = default;
};

// The name of a row of model_types(), and the options of all types. Options of other types keep their defaults.
struct ModelOptions {
  std::string type = "resnet";
  std::string init_from;              // a safetensors file whose weights a run starts from; empty: random ones
  std::vector<std::string> freeze;    // parameters that training leaves alone, as Network::freeze() takes them
  CrossEntropyOptions cross_entropy;  // of models of images
  ResNetOptions resnet;               // once loaded, nothing is left automatic
  AlexNetOptions alexnet;
  std::vector<LayerOptions> layers;
  LstmLmOptions lstm;        // embedding: never 0 once loaded; vocabulary: never 0 once the data have been seen
  DeepSpeechOptions speech;  // classes: once loaded, the characters of data.alphabet and CTC's blank
  bool operator==(const ModelOptions&) const = default;
};

// "data" of a language model: files with one sentence a line.
struct TextDataOptions {
  std::string train, valid, test;
  std::string vocabulary;                  // one word a line; empty: the words of `train`
  std::optional<int64_t> vocabulary_size;  // words of a vocabulary made from `train`: the most frequent ones
  int64_t bptt = 35;                       // words that a stream reads in a step, and that gradients go back through
  int64_t eval_streams = 10;               // streams of an evaluation
  bool operator==(const TextDataOptions&) const = default;
};

// The name of a row of data_types(), and the options of all types. Options of other types keep their defaults.
struct DataOptions {
  std::string type = "synthetic";
  std::string path;                    // the folder of the set, for types that have one
  ImageOptions images;                 // make_images() replaces images.synthetic.seed by the config's seed
  int64_t threads = 1;                 // threads that decode and augment, per rank
  std::optional<int64_t> train_limit;  // use only so many images, words or utterances, the first ones
  std::optional<int64_t> test_limit;
  double validation_split = 0;  // share of the training images or utterances that are held back; 0: none
  TextDataOptions text;
  SpeechOptions speech;
  bool operator==(const DataOptions&) const = default;
};

struct TrainingOptions {
  int64_t epochs = 1;
  int64_t batch_per_worker = 32;      // images, streams of text, or utterances
  int64_t accumulate = 1;             // micro-batches of a worker's batch, computed one after the other
  std::optional<int64_t> max_steps;   // stop after so many steps, whatever `epochs` says
  int64_t eval_every_epochs = 1;      // 0: only at the end
  int64_t eval_batch = 256;           // images, words of each stream, or utterances
  std::optional<int64_t> stop_after;  // the run ends after so many evaluations without a lower validation loss
  int64_t micro_batch() const { return batch_per_worker / accumulate; }
  bool operator==(const TrainingOptions&) const = default;
};

enum class OptimizerType { sgd, dgc };
// Whether workers send messages of their largest values, so that there is a sparsity; else the whole gradient travels.
constexpr bool compresses(OptimizerType type) {
  switch (type) {
    case OptimizerType::sgd:
      return false;
    case OptimizerType::dgc:
      return true;
  }
  throw InternalError("an optimizer that compresses() does not know");
}

struct OptimizerOptions {
  OptimizerType type = OptimizerType::sgd;
  DgcOptions dgc{.sgd = {.momentum = 0.9}};  // has keys of "exchange" too; with type sgd only dgc.sgd counts
  int64_t max_skipped_steps = 100;  // the run ends after so many steps in a row with gradients that are not finite
  // dgc only:
  SparsitySchedule sparsity;
  bool flush_at_end = false;  // send every residual before the final evaluation
  bool operator==(const OptimizerOptions&) const = default;
};

enum class CommunicatorType { automatic, single, threads, mpi, nccl };
enum class Overlap { automatic, on, off };
// The step of momentum SGD that the shared weights take with what workers' own weights have moved by.
struct OuterOptions {
  double learning_rate = 1;
  double momentum = 0;
  bool nesterov = false;
  bool operator==(const OuterOptions&) const = default;
};
// The keys of "exchange" that are not in OptimizerOptions::dgc.
struct ExchangeOptions {
  CommunicatorType communicator = CommunicatorType::automatic;
  int64_t every_steps = 1;        // above 1: each worker takes the steps in between on weights of its own
  OuterOptions outer;             // every_steps above 1
  std::optional<double> wait;     // every_steps above 1: seconds; unset: ranks wait for all
  int64_t workers_per_group = 1;  // dgc
  DenseValues dense_values = DenseValues::fp32;  // sgd
  Overlap overlap = Overlap::automatic;          // dgc
  double bucket_mb = 8;                          // MiB of gradient
  int64_t failure_timeout_s = 10;  // several processes: time until all know that one is gone; 0: no heartbeat
  std::string interface;  // several processes: rank 0 listens there alone; empty: dist/meeting/interfaces.h decides
  bool operator==(const ExchangeOptions&) const = default;
};

struct CheckpointOptions {
  int64_t every_epochs = 1;            // 0: only at the end and when interrupted
  std::optional<int64_t> every_steps;  // besides every_epochs
  int64_t keep = 2;
  bool best = false;  // besides, the one of the evaluation with the lowest validation loss
  bool operator==(const CheckpointOptions&) const = default;
};

struct Config {
  std::string name;  // unless given, the file's name without ".json"
  uint64_t seed = 1;
  std::string device = "auto";  // "auto", "cpu" or "cuda:N"
  Precision precision = Precision::fp32;
  std::string conv_plans;  // a file of `dgc bench convolutions`; empty: the first plans of cuDNN's lists
  int64_t workers_per_rank = 1;
  int64_t workers_at_once = 0;  // of a rank; 0: as a GPU's memory allows; once loaded, at most workers_per_rank
  int64_t ranks = 1;            // threads of this process; under a launcher the processes that it started
  int64_t threads = 0;          // compute threads per rank; 0: usable_cores(), shared by the machine's ranks
  ModelOptions model;
  DataOptions data;
  TrainingOptions training;
  OptimizerOptions optimizer;
  LrSchedule learning_rate;  // make_lr_schedule() replaces learning_rate.epochs by training.epochs
  ExchangeOptions exchange;
  CheckpointOptions checkpoint;
  std::string output = "runs/{name}";  // {name} is filled in when loaded
  int64_t check_replicas_every = 100;  // steps; 0: never
  int64_t workers() const { return ranks * workers_per_rank; }
  bool operator==(const Config&) const = default;
};

// How many of a rank's workers compute at the same time where a device has room for all: exchange.overlap "on" is for
// workers that compute one after another.
inline int64_t most_at_once(const Config& config) {
  if (config.workers_at_once > 0) return config.workers_at_once;
  return config.exchange.overlap == Overlap::on ? 1 : config.workers_per_rank;
}

}  // namespace dgc
