#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tensor/wire_types.h"

// What a config file says, as plain values. The defaults here ARE the defaults of the JSON keys of the same names;
// ranges and meanings are in config/keys_*.cpp, and configs/README.md is made from both. A Config that load_config()
// returned is complete: every range is checked and every model/optimizer "auto" is decided, except `device`, `threads`
// and the exchange's, which depend on the machine.
namespace dgc {

enum class Precision { fp32, tf32, bf16, fp16 };

enum class LayerType {
  conv2d,
  batch_norm,
  relu,
  tanh,
  sigmoid,
  max_pool,
  avg_pool,
  global_pool,
  dropout,
  lrn,
  flatten,
  linear
};

// One entry of a layer list. A field that is not its type's keeps its default.
struct LayerOptions {
  LayerType type = LayerType::relu;
  int64_t out = 0;                          // conv2d, linear
  int64_t kernel = 0, stride = 1, pad = 0;  // conv2d, max_pool, avg_pool; square
  int64_t groups = 1;                       // conv2d
  bool bias = true;                         // conv2d, linear
  bool relu = false;                        // batch_norm: with a ReLU behind it
  double p = 0.5;                           // dropout: the share that is dropped
  int64_t size = 5;                         // lrn: channels in a window
  double alpha = 1e-4, beta = 0.75, k = 1;  // lrn
  bool operator==(const LayerOptions&) const = default;
};

// "model" of a language model.
struct LstmModelOptions {
  int64_t vocabulary = 0;  // words; never 0 once the data has been seen
  int64_t embedding = 0;   // never 0 once loaded
  int64_t hidden = 0;
  int64_t layers = 2;
  double dropout = 0;  // after the embedding and after every LSTM layer
  bool tied = true;    // the decoder's matrix is the embedding's
  double init = 0.1;   // weights start uniform in +-init
  bool operator==(const LstmModelOptions&) const = default;
};

// Of each convolution of a speech model, first to last; all lists are of one length.
struct SpeechConvolutionOptions {
  std::vector<int64_t> channels = {32, 32};
  std::vector<int64_t> kernel_frames = {11, 11}, kernel_frequencies = {41, 21};
  std::vector<int64_t> stride_frames = {2, 1}, stride_frequencies = {2, 2};
  bool operator==(const SpeechConvolutionOptions&) const = default;
};

enum class SpeechCell { lstm, gru, tanh, relu };  // as RnnCell

// "model" of a speech model.
struct SpeechModelOptions {
  SpeechConvolutionOptions convolutions;
  SpeechCell cell = SpeechCell::gru;
  int64_t layers = 7, hidden = 1200;
  bool bias = false;          // of the recurrent layers
  bool bidirectional = true;  // the sum of both directions
  int64_t lookahead = 20;     // steps, where there is one direction
  int64_t classes = 0;        // no key: once loaded, the characters of data.alphabet and CTC's blank
  bool operator==(const SpeechModelOptions&) const = default;
};

enum class ModelType { resnet, alexnet, layers, lstm_lm, deep_speech };
enum class Stem { automatic, cifar, imagenet };               // never automatic once loaded
enum class Shortcut { automatic, identity_pad, projection };  // never automatic once loaded

struct ModelOptions {
  ModelType type = ModelType::resnet;
  int64_t classes = 0;                      // resnet, alexnet
  int64_t depth = 0;                        // resnet: 6n+2 with the cifar stem; 18, 34, 50, 101 or 152 with imagenet's
  int64_t width = 0;                        // resnet: channels of the first stage; never 0 once loaded
  Stem stem = Stem::automatic;              // resnet
  Shortcut shortcut = Shortcut::automatic;  // resnet
  double dropout = 0.5;                     // alexnet
  std::vector<LayerOptions> layers;         // layers
  LstmModelOptions lstm;                    // lstm_lm
  SpeechModelOptions speech;                // deep_speech
  bool operator==(const ModelOptions&) const = default;
};

enum class DataType { cifar10, mnist, fashion_mnist, image_folder, synthetic, text, an4, librispeech, speech_manifest };

struct AugmentationOptions {
  int64_t pad_crop = 0;  // zero pixels around the image, then a random crop of its size
  bool flip = false;     // mirror left to right, every second time
  // image_folder: the random-resized-crop's share of the image's area, and its width / height.
  double min_scale = 0.08, max_scale = 1;
  double min_ratio = 0.75, max_ratio = 4.0 / 3.0;
  bool operator==(const AugmentationOptions&) const = default;
};

// "data" of a language model: files with one sentence a line.
struct TextDataOptions {
  std::string train, valid, test;
  std::string vocabulary;                  // one word a line; empty: the words of `train`
  std::optional<int64_t> vocabulary_size;  // of a vocabulary made from `train`: the most frequent ones
  int64_t bptt = 35;                       // words that a stream reads in a step, and that gradients go back through
  int64_t eval_streams = 10;               // of an evaluation
  bool operator==(const TextDataOptions&) const = default;
};

enum class SpeechFeatures { spectrogram, log_mel };
enum class SpeechScaling { utterance, feature };
enum class BadExamples { refuse, skip };

// What a speech model sees of a recording.
struct SpeechFeatureOptions {
  SpeechFeatures kind = SpeechFeatures::spectrogram;
  SpeechScaling scaling = SpeechScaling::utterance;
  double window_ms = 20, step_ms = 10;
  int64_t mels = 40;  // log_mel
  bool operator==(const SpeechFeatureOptions&) const = default;
};

struct SpeechMaskOptions {
  int64_t time_masks = 0, time_frames = 0;
  double time_share = 1;
  int64_t feature_masks = 0, feature_width = 0;
  bool operator==(const SpeechMaskOptions&) const = default;
};

struct SpeechAugmentationOptions {
  double noise_probability = 0;
  double min_noise_db = 10, max_noise_db = 30;
  double min_tempo = 1, max_tempo = 1;
  SpeechMaskOptions mask;
  bool operator==(const SpeechAugmentationOptions&) const = default;
};

// "data" of a speech model, whichever way the recordings are listed.
struct SpeechDataOptions {
  std::vector<std::string> train, test;  // librispeech: folders; speech_manifest: files; empty: the usual ones
  std::string alphabet = "'ABCDEFGHIJKLMNOPQRSTUVWXYZ ";
  int64_t sample_rate = 16000;
  bool resample = true;
  double max_seconds = 60;
  BadExamples on_bad_example = BadExamples::refuse;
  SpeechFeatureOptions features;
  SpeechAugmentationOptions augment;
  int64_t bucket_batches = 16;  // global batches that are sorted by length together
  int64_t sorted_epochs = 1;    // the first ones, that go from short to long
  bool operator==(const SpeechDataOptions&) const = default;
};

struct DataOptions {
  DataType type = DataType::synthetic;
  std::string path;  // of all that is one folder
  AugmentationOptions augment;
  int64_t pad_to = 0;        // mnist, fashion_mnist, cifar10: black border up to this side; 0: none
  int64_t image_size = 224;  // image_folder: side of the square that the model sees
  int64_t height = 32, width = 32, channels = 3, classes = 10;  // synthetic, as are the next two lines
  int64_t train_samples = 1024, test_samples = 256;
  double noise = 1;                    // standard deviation; the patterns of the classes have deviation 1
  int64_t threads = 1;                 // that decode and augment, per rank
  std::optional<int64_t> train_limit;  // use only the first so many: images, words, or utterances
  std::optional<int64_t> test_limit;
  TextDataOptions text;
  SpeechDataOptions speech;
  bool operator==(const DataOptions&) const = default;
};

struct TrainingOptions {
  int64_t epochs = 1;
  int64_t batch_per_worker = 32;     // images, streams of text, or utterances
  std::optional<int64_t> max_steps;  // stop after so many, however many epochs that is
  int64_t eval_every_epochs = 1;     // 0: only at the end
  int64_t eval_batch = 256;          // images, words of each stream, or utterances
  bool operator==(const TrainingOptions&) const = default;
};

enum class OptimizerType { sgd, dgc };

// The phases of `sparsity`, one after another, share the first `epochs` epochs evenly.
struct SparsityWarmup {
  double epochs = 0;
  std::vector<double> sparsity = {0.75, 0.9375, 0.984375, 0.996};
  bool operator==(const SparsityWarmup&) const = default;
};

struct OptimizerOptions {
  OptimizerType type = OptimizerType::sgd;
  double momentum = 0.9;
  bool nesterov = false;
  double weight_decay = 0;
  std::optional<double> clip_norm;  // of the mean gradient over all workers, over all parameters
  int64_t max_skipped_steps = 100;  // in a row, as a gradient was not finite, before the run is given up
  // dgc only:
  double sparsity = 0.999;
  SparsityWarmup warmup;
  bool momentum_correction = true;
  bool factor_masking = true;
  bool flush_at_end = false;  // send every residual before the final evaluation
  bool operator==(const OptimizerOptions&) const = default;
};

enum class ScheduleType { constant, step, cosine, polynomial, plateau, exponential };

struct LearningRateOptions {
  ScheduleType type = ScheduleType::constant;
  double base = 0.1;
  std::vector<double> milestones;  // step: epochs, increasing
  double factor = 0.1;             // step, plateau, exponential: the rate is multiplied by it
  double power = 1;                // polynomial
  double end = 0;                  // cosine, polynomial: the rate after the last step; plateau: the lowest
  int64_t patience = 0;            // plateau: evaluations without improvement that are tolerated
  double threshold = 1e-4;         // plateau: relative improvement of the evaluation loss that counts
  double warmup_epochs = 0;        // a straight line from warmup_from to the schedule's value
  double warmup_from = 0;          // a learning rate
  bool operator==(const LearningRateOptions&) const = default;
};

enum class CommunicatorType { automatic, single, threads, mpi, nccl };
enum class DenseValues { fp32, fp16 };
enum class Overlap { automatic, on, off };
struct ExchangeOptions {
  CommunicatorType communicator = CommunicatorType::automatic;
  Transport transport = Transport::automatic;
  ExchangeAlgorithm algorithm = ExchangeAlgorithm::all_gather;  // dgc
  int64_t workers_per_group = 1;                                // dgc
  DenseValues dense_values = DenseValues::fp32;                 // sgd
  WireFormat wire;
  SmallTensors small_tensors = SmallTensors::dense;
  double small_tensors_sparsity = 0.99;
  Overlap overlap = Overlap::automatic;  // dgc
  double bucket_mb = 8;                  // MiB of gradient
  int64_t failure_timeout_s = 10;        // several processes: until all know that one is gone; 0: no heartbeat
  bool operator==(const ExchangeOptions&) const = default;
};

struct CheckpointOptions {
  int64_t every_epochs = 1;            // 0: only at the end and when interrupted
  std::optional<int64_t> every_steps;  // besides every_epochs
  int64_t keep = 2;
  bool operator==(const CheckpointOptions&) const = default;
};

struct Config {
  std::string name;  // unless given, the file's name without ".json"
  uint64_t seed = 1;
  std::string device = "auto";  // "auto", "cpu" or "cuda:N"
  Precision precision = Precision::fp32;
  int64_t workers_per_rank = 1;
  int64_t ranks = 1;    // threads of this process; under a launcher the processes it started
  int64_t threads = 0;  // compute threads per rank; 0: the machine's cores shared by its ranks
  ModelOptions model;
  DataOptions data;
  TrainingOptions training;
  OptimizerOptions optimizer;
  LearningRateOptions learning_rate;
  ExchangeOptions exchange;
  CheckpointOptions checkpoint;
  std::string output = "runs/{name}";  // {name} is filled in when loaded
  int64_t check_replicas_every = 100;  // steps; 0: never
  bool operator==(const Config&) const = default;
};

}  // namespace dgc
