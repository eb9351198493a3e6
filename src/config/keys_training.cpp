#include "config/keys.h"

namespace dgc {

void add_training_keys(Keys& keys) {
  auto training = Section<Config>(keys).section("training", &Config::training);
  training
      .add("epochs", &TrainingOptions::epochs,
           "Passes over the training set. A run, also a finished one, is resumed with more of them unless "
           "`learning_rate` spreads over all")
      .must_be_given()
      .at_least(1)
      .at_most(1000000)
      .free_on_resume();
  training
      .add("batch_per_worker", &TrainingOptions::batch_per_worker,
           "Samples a worker takes per step; of text, streams, with `data.bptt` words of each; of speech, utterances")
      .must_be_given()
      .at_least(1)
      .at_most(1000000);
  training
      .add("accumulate", &TrainingOptions::accumulate,
           "Gradient accumulation: a worker computes its batch in so many micro-batches of equal size, one after the "
           "other, and adds up their gradients, which takes memory for the activations of one of them. Changes what "
           "batch norm sees, and little else (docs/fine_tuning.md)")
      .at_least(1)
      .at_most(1000000);
  training.add("max_steps", &TrainingOptions::max_steps, "Stop after so many steps, however many epochs that is")
      .at_least(1)
      .free_on_resume();
  training
      .add("eval_every_epochs", &TrainingOptions::eval_every_epochs, "Epochs between evaluations; 0: only at the end")
      .at_least(0);
  training
      .add("eval_batch", &TrainingOptions::eval_batch,
           "Samples per batch of an evaluation, of text words of each stream, of speech utterances; losses depend on "
           "it in their last digits alone, and weights only with `plateau` and `stop_after`")
      .at_least(1)
      .at_most(1000000)
      .free_on_resume();
  training
      .add("stop_after", &TrainingOptions::stop_after,
           "Early stopping: the run ends after so many evaluations in a row without a lower validation loss; null: at "
           "its last epoch. Needs a validation set, as text has one and `data.validation_split` makes one")
      .at_least(1);
}

void add_exchange_keys(Keys& keys) {
  const auto exchange = Section<Config>(keys).section("exchange", &Config::exchange);
  const auto dgc = Section<Config>(keys).part(&Config::optimizer).section("exchange", &OptimizerOptions::dgc);
  exchange
      .add("communicator", &ExchangeOptions::communicator,
           "`single`: one rank; `threads`: ranks are threads of this process; `mpi`: ranks are processes that mpirun "
           "or srun has started, on any device; `nccl`: ranks are processes with a GPU each; `auto`: with several "
           "processes that MPI connects `nccl` where each has its own GPU, else `mpi`; with several that torchrun, "
           "plain srun or you have started `nccl`; with one what `ranks` asks for")
      .free_on_resume();
  dgc.add("transport", &DgcOptions::transport,
          "How what is compressed travels: `sparse`: every message to every worker; `dense`: summed on its way, as "
          "dense numbers; `auto`: whichever brings a worker fewer bytes, decided anew for each sparsity "
          "(docs/exchange.md). Changes no result but with `split_reduce`")
      .free_on_resume();
  dgc.add("algorithm", &DgcOptions::algorithm,
          "How messages come together, with `\"type\": \"dgc\"`: `all_gather`: all of them with every worker; "
          "`split_reduce`: every worker adds up one shard and sends its largest sums to all, so that what a worker "
          "receives does not grow with their number; what is dropped is kept for the next step (docs/exchange.md)");
  exchange
      .add("every_steps", &ExchangeOptions::every_steps,
           "Steps from one exchange to the next. Above 1 each worker takes them on weights of its own, as `optimizer` "
           "says, and what these have moved by is exchanged as a gradient is (docs/exchange.md)")
      .at_least(1)
      .at_most(1000000);
  const auto outer = exchange.section("outer", &ExchangeOptions::outer);
  outer
      .add("learning_rate", &OuterOptions::learning_rate,
           "With `every_steps` above 1: the rate at which the shared weights follow the mean of what the workers' own "
           "have moved by")
      .more_than(0)
      .at_most(1e6);
  outer.add("momentum", &OuterOptions::momentum, "Share of that step's old momentum kept from exchange to exchange")
      .at_least(0)
      .less_than(1);
  outer.add("nesterov", &OuterOptions::nesterov, "Nesterov's momentum in that step");
  exchange
      .add("wait", &ExchangeOptions::wait,
           "With `every_steps` above 1 and `\"type\": \"dgc\"`: seconds for which an exchange waits for slower ranks "
           "once half of all ranks are there. A rank that comes later is in the next exchange, with all that it has "
           "(docs/exchange.md); null: all wait for all")
      .at_least(0)
      .at_most(86400)
      .free_on_resume();
  exchange
      .add("workers_per_group", &ExchangeOptions::workers_per_group,
           "With `\"type\": \"dgc\"`: so many consecutive workers, as those of one machine, add up their gradients "
           "and compress them as one worker (docs/exchange.md); 1: no groups")
      .at_least(1)
      .at_most(65536);
  exchange.add(
      "dense_values", &ExchangeOptions::dense_values,
      "Of gradients and their sum with `\"type\": \"sgd\"`: `fp16` halves the bytes, and what rounding takes away "
      "is kept for the next step (docs/exchange.md)");
  exchange
      .add("failure_timeout_s", &ExchangeOptions::failure_timeout_s,
           "With several processes: seconds within which all know that one has died, hangs or is stopped, and end at "
           "most three seconds later; 0: no heartbeat")
      .at_least(0)
      .at_most(86400)
      .free_on_resume();
  exchange
      .add("interface", &ExchangeOptions::interface,
           "With several processes: the network interface, or its address, at which rank 0 listens for the others; "
           "empty: the address that they are given, and for heartbeats all of the machine's (docs/launch.md). NCCL and "
           "MPI have settings of their own")
      .free_on_resume();
  const auto wire = dgc.section("wire", &DgcOptions::wire);
  wire.add("values", &WireFormat::values,
           "Compressed values in a message; `int8`: with a scale for each tensor. What rounding takes away is kept for "
           "the next step");
  wire.add("indices", &WireFormat::indices,
           "Their places: `block16`: 16-bit offsets in blocks of 65,536; `run16`: 16-bit run lengths of zeros, as the "
           "paper; `rice`: Rice codes, the shortest (docs/wire_format.md). Changes no result")
      .free_on_resume();
  dgc.add("small_tensors", &DgcOptions::small_tensors,
          "1-D tensors (biases, BatchNorm's scale and shift): `dense` in fp32; `dense_fp16`, what rounding takes "
          "away is kept for the next step; `sparse`: all of them compressed as one tensor");
  dgc.add("small_tensors_sparsity", &DgcOptions::small_tensors_sparsity,
          "Share of that one tensor that is not sent, once `optimizer.sparsity` has warmed up to it")
      .at_least(0)
      .less_than(1);
  exchange
      .add("overlap", &ExchangeOptions::overlap,
           "With `\"type\": \"dgc\"`: compress and exchange gradients while those of earlier layers are still being "
           "computed. `auto`: between processes on CPUs, where there is more than one bucket and `workers_at_once` "
           "is not above 1; on GPUs off, as it has not run between several (docs/exchange.md). Changes no result")
      .free_on_resume();
  exchange
      .add("bucket_mb", &ExchangeOptions::bucket_mb,
           "With `overlap`: MiB of gradient that are compressed together and travel as one message, at least")
      .more_than(0)
      .at_most(1e6)
      .free_on_resume();
}

void add_checkpoint_keys(Keys& keys) {
  auto checkpoint = Section<Config>(keys).section("checkpoint", &Config::checkpoint);
  checkpoint
      .add("every_epochs", &CheckpointOptions::every_epochs,
           "Epochs between checkpoints; 0: only at the end and when interrupted")
      .at_least(0)
      .free_on_resume();
  checkpoint.add("every_steps", &CheckpointOptions::every_steps, "Steps between checkpoints, besides `every_epochs`")
      .at_least(1)
      .free_on_resume();
  checkpoint
      .add("keep", &CheckpointOptions::keep,
           "Newest checkpoints kept, and besides the last good one while a run diverges")
      .at_least(1)
      .at_most(1000000)
      .free_on_resume();
  checkpoint.add("best", &CheckpointOptions::best,
                 "Keep the checkpoint of the evaluation with the lowest validation loss besides, for `dgc eval RUN "
                 "--best`. Needs a validation set, as `training.stop_after` does");
}

}  // namespace dgc
