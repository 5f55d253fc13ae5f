"""The engines: `inline` in this process, `ray` on Ray actors. Each implements `pipeflow.lowering.engine`."""
