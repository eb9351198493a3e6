#include "config/keys.h"

namespace dgc {

void add_training_keys(Keys& keys) {
  auto training = Section<Config>(keys).section("training", &Config::training);
  training.add("epochs", &TrainingOptions::epochs, "Passes over the training set")
      .must_be_given()
      .at_least(1)
      .at_most(1000000);
  training.add("batch_per_worker", &TrainingOptions::batch_per_worker, "Samples a worker takes per step")
      .must_be_given()
      .at_least(1)
      .at_most(1000000);
  training.add("max_steps", &TrainingOptions::max_steps, "Stop after so many steps, however many epochs that is")
      .at_least(1);
  training
      .add("eval_every_epochs", &TrainingOptions::eval_every_epochs, "Epochs between evaluations; 0: only at the end")
      .at_least(0);
  training.add("eval_batch", &TrainingOptions::eval_batch, "Samples per batch of an evaluation; changes no result")
      .at_least(1)
      .at_most(1000000);
}

void add_exchange_keys(Keys& keys) {
  auto exchange = Section<Config>(keys).section("exchange", &Config::exchange);
  exchange.add(
      "communicator", &ExchangeOptions::communicator,
      "`single`: one rank; `threads`: ranks are threads of this process; `nccl`: ranks are processes with a GPU "
      "each; `auto`: `nccl` when a launcher has started several, else what `ranks` asks for");
  exchange.add("transport", &ExchangeOptions::transport,
               "How messages travel; `auto` is `sparse` for now. Changes no result");
  exchange
      .add("failure_timeout_s", &ExchangeOptions::failure_timeout_s,
           "With several processes: seconds within which all end when one has died, hangs or is stopped; 0: no "
           "heartbeat")
      .at_least(0)
      .at_most(86400);
  auto wire = exchange.section("wire", &ExchangeOptions::wire);
  wire.add("values", &WireOptions::values,
           "Compressed values in a message; what fp16 rounds off is kept for the next step");
  wire.add("indices", &WireOptions::indices, "`block16`: 16-bit offsets in blocks of 65,536");
}

void add_checkpoint_keys(Keys& keys) {
  auto checkpoint = Section<Config>(keys).section("checkpoint", &Config::checkpoint);
  checkpoint
      .add("every_epochs", &CheckpointOptions::every_epochs,
           "Epochs between checkpoints; 0: only at the end and when interrupted")
      .at_least(0);
  checkpoint.add("every_steps", &CheckpointOptions::every_steps, "Steps between checkpoints, besides `every_epochs`")
      .at_least(1);
  checkpoint.add("keep", &CheckpointOptions::keep, "Newest checkpoints kept").at_least(1).at_most(1000000);
}

}  // namespace dgc
