#!/usr/bin/env -S node --max-semi-space-size=32
/**
 * The `trilithon` command begins here. It listens to signals before it loads the rest, which takes most of a second:
 * a supervisor may stop a node in the moment in which it started it.
 *
 * What a node holds of a commit lives until its batch is durable, some tens of milliseconds: in the
 * engine's own young generation (16 MiB) a quarter of it is copied at each collection, in 32 MiB far
 * less. That can only be said to the engine as it starts, so it stands in the line above.
 */
import { listenEarly } from './early-signals.ts'

listenEarly(process.argv[2])
await import('./command.ts')
