#!/bin/bash
#SBATCH --nodes=2 --ntasks-per-node=2 --requeue --open-mode=append --signal=USR1@120
# Trains a config under SLURM, and goes on after the time limit, or after a node has died:
#
#     sbatch slurm_job.sh CONFIG RUN
#
# CONFIG is the config file, and RUN the run's folder, which all nodes must see.
resume=
[[ -e $2/checkpoints || ${SLURM_RESTART_COUNT:-0} -gt 0 ]] && resume=--resume  # begins anew where nothing is saved
srun --mpi=pmix --kill-on-bad-exit=1 dgc train "$1" --out "$2" $resume
code=$?
# 0: all epochs are done. 2: something given is wrong, or the run has diverged. Else the job waits for nodes and time again.
if ((code != 0 && code != 2 && ${SLURM_RESTART_COUNT:-0} < 20)); then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$code"
