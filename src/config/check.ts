/** Checks that single values do not tell: settings that contradict one another. */
import {
  clockDriftPpmMax,
  clockLeadMsMin,
  entryBytesMax,
  leaseMsMin,
  transactionBytesMax,
} from '../base/limits.ts'
import type { Listen } from './values.ts'
import type { NodeConfig } from './node-config.ts'
import { checkListenerSettings, type ListenerSettings } from './listener-settings.ts'
import { isLoopbackName } from '../adapters/origin-gate.ts'
import { buildReplicaSets } from './replica-sets.ts'
import { describeOrigin, type ConfigProblem, type Origin } from './source.ts'

/** The configuration of every process that listens. */
export interface ListenerConfig {
  readonly listen: Listen
  readonly secretFile: string | undefined
  readonly tls: { readonly certFile: string; readonly keyFile: string } | undefined
  readonly insecure: boolean
  readonly listener?: ListenerSettings
}

type Complain = (name: string, text: string) => void

/** Every contradiction, each at the place of the setting to change. */
export function checkConfig(
  config: NodeConfig,
  origins: ReadonlyMap<string, Origin>,
): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = []
  const complain = complaints(problems, origins)
  const ids = config.nodes.map(({ id }) => id)
  if (!ids.includes(config.node)) {
    complain('node', `node "${config.node}" is not one of the nodes: ${ids.join(', ')}`)
  }
  checkSets(config, complain)
  const lacksPeerSecret = config.nodes.length > 1 && config.peerSecretFile === undefined
  checkListener(config, origins, complain, lacksPeerSecret ? ['peer_secret_file'] : [])
  checkLimitPairs(config, complain)
  if (origins.has('buffer_copies')) checkBufferCopies(config, complain)
  return problems
}

/** A node that joins goes by the nodes that the cluster began with. Where all nodes of a set join, the set has come later. */
function checkSets({ nodes }: NodeConfig, complain: Complain): void {
  if (nodes.some(({ joins = false }) => !joins)) return
  const ids = nodes.map(({ id }) => id).join(', ')
  complain(
    'nodes',
    `all nodes join (${ids}): name the nodes that the cluster began with too, each without joins`,
  )
}

/** Each copy goes to a set of its own; the default asks for no more than there are. */
function checkBufferCopies({ nodes, bufferCopies }: NodeConfig, complain: Complain): void {
  const others = buildReplicaSets(nodes).length - 1
  if (bufferCopies <= others) return
  const there =
    others === 0
      ? 'there is no other replica set'
      : `there ${others === 1 ? 'is one other' : `are ${others} others`}`
  complain(
    'buffer_copies',
    `buffer_copies (${bufferCopies}) wants as many replica sets besides that of the cell, and ${there}`,
  )
}

/** Adds problems, each at the place of a setting. */
export function complaints(
  problems: ConfigProblem[],
  origins: ReadonlyMap<string, Origin>,
): Complain {
  return (name, text) => {
    problems.push({ where: describeOrigin(origins.get(name) ?? { kind: 'default' }), text })
  }
}

/**
 * A process that listens beyond this machine needs TLS and secrets, or `--insecure`. `lacking`: further
 * settings that it lacks.
 */
export function checkListener(
  config: ListenerConfig,
  origins: ReadonlyMap<string, Origin>,
  complain: Complain,
  lacking: readonly string[] = [],
): void {
  if (config.listener !== undefined) checkListenerSettings(config.listener, complain)
  const hasCert = origins.has('tls.cert_file')
  if (hasCert !== origins.has('tls.key_file')) {
    complain(hasCert ? 'tls.cert_file' : 'tls.key_file', 'tls wants both cert_file and key_file')
  }
  const lacks = lackingSecurity(config, lacking)
  if (lacks === undefined || config.insecure || isLoopback(config.listen.host)) return
  const text =
    `listening on ${config.listen.host}, beyond this machine, wants ${lacks}; ` +
    `set these, listen on 127.0.0.1, or insist with --insecure`
  complain('listen', text)
}

function lackingSecurity(config: ListenerConfig, others: readonly string[]): string | undefined {
  const lacking: string[] = []
  if (config.tls === undefined) lacking.push('tls.cert_file and tls.key_file')
  if (config.secretFile === undefined) lacking.push('secret_file')
  const all = [...lacking, ...others]
  return all.length === 0 ? undefined : all.join(' and ')
}

export function isLoopback(host: string): boolean {
  return isLoopbackName(host)
}

/** The same relations that `checkLimits` asserts, said of the settings by name. */
function checkLimitPairs({ limits }: NodeConfig, complain: Complain): void {
  if (limits.heartbeatMs * 3 > limits.suspectMs) {
    complain(
      'limits.suspect_ms',
      `limits.suspect_ms (${limits.suspectMs}) must be at least three times limits.heartbeat_ms (${limits.heartbeatMs})`,
    )
  }
  if (limits.backoffMs > limits.backoffMaxMs) {
    complain(
      'limits.backoff_ms',
      `limits.backoff_ms (${limits.backoffMs}) must not exceed limits.backoff_max_ms (${limits.backoffMaxMs})`,
    )
  }
  if (limits.clockDriftPpm > clockDriftPpmMax) {
    complain(
      'limits.clock_drift_ppm',
      `limits.clock_drift_ppm (${limits.clockDriftPpm}) must be at most ${clockDriftPpmMax}: under clocks that are further off, no lease means anything`,
    )
  } else if (limits.leaseMs > 0 && limits.leaseMs < leaseMsMin(limits.clockDriftPpm)) {
    complain(
      'limits.lease_ms',
      `limits.lease_ms (${limits.leaseMs}) must be 0, or at least ${leaseMsMin(limits.clockDriftPpm)} with limits.clock_drift_ppm (${limits.clockDriftPpm}): a shorter lease is hardly held before it is over`,
    )
  }
  if (limits.clockLeadMsMax < clockLeadMsMin) {
    complain(
      'limits.clock_lead_ms_max',
      `limits.clock_lead_ms_max (${limits.clockLeadMsMax}) must be at least ${clockLeadMsMin}: others' clocks are known as exactly as messages are fast`,
    )
  }
  if (limits.entryBytesMax > entryBytesMax || limits.entryBytesMax < transactionBytesMax) {
    complain(
      'limits.entry_bytes_max',
      `limits.entry_bytes_max (${limits.entryBytesMax}) must be from ${transactionBytesMax} to ${entryBytesMax}`,
    )
  }
}
