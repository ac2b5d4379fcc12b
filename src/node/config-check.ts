/** What single values cannot tell: settings that contradict one another. */
import { isIPv4 } from 'node:net'
import { clockDriftPpmMax, entryBytesMax, transactionBytesMax } from '../base/limits.ts'
import type { NodeConfig } from './node-config.ts'
import { describeOrigin, type ConfigProblem, type Origin } from './config-source.ts'

/** Every contradiction, each at the place of the setting to change. */
export function checkConfig(
  config: NodeConfig,
  origins: ReadonlyMap<string, Origin>,
): readonly ConfigProblem[] {
  const problems: ConfigProblem[] = []
  const complain = (name: string, text: string): void => {
    problems.push({ where: describeOrigin(origins.get(name) ?? { kind: 'default' }), text })
  }
  const ids = config.nodes.map(({ id }) => id)
  if (!ids.includes(config.node)) {
    complain('node', `node "${config.node}" is not one of the nodes: ${ids.join(', ')}`)
  }
  const hasCert = origins.has('tls.cert_file')
  if (hasCert !== origins.has('tls.key_file')) {
    complain(hasCert ? 'tls.cert_file' : 'tls.key_file', 'tls wants both cert_file and key_file')
  }
  const lacks = lackingSecurity(config)
  if (lacks !== undefined && !config.insecure && !isLoopback(config.listen.host)) {
    const text =
      `listening on ${config.listen.host}, beyond this machine, wants ${lacks}; ` +
      `set these, listen on 127.0.0.1, or insist with --insecure`
    complain('listen', text)
  }
  checkLimitPairs(config, complain)
  return problems
}

function lackingSecurity(config: NodeConfig): string | undefined {
  const lacking: string[] = []
  if (config.tls === undefined) lacking.push('tls.cert_file and tls.key_file')
  if (config.secretFile === undefined) lacking.push('secret_file')
  return lacking.length === 0 ? undefined : lacking.join(' and ')
}

export function isLoopback(host: string): boolean {
  return host === 'localhost' || host === '::1' || (isIPv4(host) && host.startsWith('127.'))
}

/** The same relations that `checkLimits` asserts, said of the settings by name. */
function checkLimitPairs(
  { limits }: NodeConfig,
  complain: (name: string, text: string) => void,
): void {
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
  }
  if (limits.entryBytesMax > entryBytesMax || limits.entryBytesMax < transactionBytesMax) {
    complain(
      'limits.entry_bytes_max',
      `limits.entry_bytes_max (${limits.entryBytesMax}) must be from ${transactionBytesMax} to ${entryBytesMax}`,
    )
  }
}
