dist_man_MANS += \
	man/dt_all_gather.3 \
	man/dt_all_reduce.3 \
	man/dt_all_to_all.3 \
	man/dt_broadcast.3 \
	man/dt_bucket.3 \
	man/dt_checkpoint.3 \
	man/dt_comm.3 \
	man/dt_comm_on_stream.3 \
	man/dt_error.3 \
	man/dt_init.3 \
	man/dt_join.3 \
	man/dt_mem_alloc.3 \
	man/dt_recorder_dump.3 \
	man/dt_reduce.3 \
	man/dt_send.3 \
	man/dt_wait.3 \
	man/dtrun-agent.8 \
	man/dtrun-clusters.7 \
	man/dtrun-frameworks.7 \
	man/dtrun-gpu.7 \
	man/dtrun-hostfile.5 \
	man/dtrun-migrate.7 \
	man/dtrun-perf.1 \
	man/dtrun-tuning.5 \
	man/dtrun.1 \
	man/dtrun.3

# A page about several functions is installed under each of their names. Names without a file of
# their own get a file that refers to the page.
man_of_functions = sed -nE 's/^\.Nm (dt_[a-z_]+)( ,)?$$/\1/p'

install-data-hook:
	for page in $(srcdir)/man/dt_*.3; do \
	    for name in $$($(man_of_functions) $$page); do \
	        [ ! -f $(srcdir)/man/$$name.3 ] || continue; \
	        echo ".so man3/$${page##*/}" >$(DESTDIR)$(man3dir)/$$name.3 && \
	            chmod 644 $(DESTDIR)$(man3dir)/$$name.3 || exit 1; \
	    done; \
	done

uninstall-hook:
	for name in $$(cat $(srcdir)/man/dt_*.3 | $(man_of_functions)); do \
	    rm -f $(DESTDIR)$(man3dir)/$$name.3; \
	done

hostfileexamplesdir = $(docdir)/hostfile-examples
dist_hostfileexamples_DATA = \
	hostfile-examples/gpus \
	hostfile-examples/logins \
	hostfile-examples/networks \
	hostfile-examples/plain \
	hostfile-examples/rack \
	hostfile-examples/train.sbatch \
	hostfile-examples/train.sge \
	hostfile-examples/this-machine
