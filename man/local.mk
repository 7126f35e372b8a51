dist_man_MANS += \
	man/dtrun-agent.8 \
	man/dtrun.1 \
	man/dtrun.3 \
	man/dtrun-hostfile.5 \
	man/dtrun-migrate.7 \
	man/dtrun-perf.1

hostfileexamplesdir = $(docdir)/hostfile-examples
dist_hostfileexamples_DATA = \
	hostfile-examples/gpus \
	hostfile-examples/logins \
	hostfile-examples/networks \
	hostfile-examples/plain \
	hostfile-examples/rack \
	hostfile-examples/train.sbatch \
	hostfile-examples/this-machine
