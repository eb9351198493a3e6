"""A round of exchange.wait in which nobody is late: everything crosses the link of rank 0, with a worker to each rank.

Rank 0 sends each other rank the messages of all ranks, that rank's own among them, in one letter
(src/train/steps/round_hub.cpp).
"""

import scale_network
import scale_step

LETTER = 16           # what travels before each letter (struct LetterSize, src/dist/mpi.cpp)
UNREAD = 16 * 2**20   # bytes that a rank may leave unread where the model is small (src/train/steps/uneven_steps.cpp)


def message(sizes):
    """Bytes of a worker's message, which has the 1-D tensors that travel dense."""
    return sizes.message + 4 * sizes.small


def letters(sizes, ranks):
    """Bytes of an Arrival, a RollCall, Messages and a Delivery (src/train/steps/round_letters.cpp)."""
    return (26 + scale_step.SHARE, 43 + (4 + scale_step.SHARE) * ranks, 9 + message(sizes),
            26 + (4 + message(sizes)) * ranks)


def parts(sizes, ranks, network, rank0):
    """Seconds by what is carried. rank0: the network as rank 0's link has it; all others have `network`."""
    def to_rank0(letter):
        return scale_network.across_one(network, ranks, LETTER + letter, rank0.down_bps, network.up_bps)

    def from_rank0(letter):
        return scale_network.across_one(network, ranks, LETTER + letter, rank0.up_bps, network.down_bps)

    arrival, roll_call, messages, delivery = letters(sizes, ranks)
    return {"norms and losses": to_rank0(arrival) + from_rank0(roll_call), "messages to rank 0": to_rank0(messages),
            "messages from rank 0": from_rank0(delivery)}


def messages_kept(sizes, ranks):
    """Bytes in rank 0's memory, at most: those of a round as they leave and as rank 0 reads them itself, and what a
    rank has left unread before all wait for it."""
    return 2 * ranks * message(sizes) + max(UNREAD, 8 * sizes.parameters)
