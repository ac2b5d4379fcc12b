/** Why a link to an address did not come up, in words that say what to do about it. */
import type { Unreached } from '../ports/transport.ts'

/** This process cannot verify the certificate: no authority that this process trusts has signed it. */
const untrusted = new Set([
  'CERT_SIGNATURE_FAILURE',
  'CERT_UNTRUSTED',
  'DEPTH_ZERO_SELF_SIGNED_CERT',
  'SELF_SIGNED_CERT_IN_CHAIN',
  'UNABLE_TO_GET_ISSUER_CERT',
  'UNABLE_TO_GET_ISSUER_CERT_LOCALLY',
  'UNABLE_TO_VERIFY_LEAF_SIGNATURE',
])

const inTls = ' (if it speaks TLS, give https://)'

/** Of an error before the link was open; `url` is where it was to lead. */
export function causeOfError(error: Error, url: string): Unreached {
  const { protocol, hostname } = new URL(url)
  const code = 'code' in error && typeof error.code === 'string' ? error.code : ''
  return causeOfTls(code, error.message) ?? causeOfSocket(code, error.message, protocol, hostname)
}

function causeOfTls(code: string, message: string): Unreached | undefined {
  if (untrusted.has(code)) {
    const what = `its certificate is not trusted (${code})`
    return wrong(`${what} (name its authority by NODE_EXTRA_CA_CERTS=FILE)`)
  }
  if (code === 'CERT_HAS_EXPIRED') return wrong('its certificate has expired')
  if (code === 'CERT_NOT_YET_VALID') {
    return wrong('its certificate is not valid yet (compare the clocks)')
  }
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') {
    return wrong(`its certificate is for other names: ${message}`)
  }
  if (!/^(EPROTO$|ERR_SSL_)/.test(code)) return undefined
  const isPlain = /wrong.version.number|packet.length.too.long|record.layer/i.test(message)
  return wrong(isPlain ? 'it does not speak TLS (give http://)' : `TLS failed (${message.trim()})`)
}

function causeOfSocket(code: string, message: string, protocol: string, host: string): Unreached {
  const hint = protocol === 'http:' ? inTls : ''
  if (code.startsWith('HPE_')) return wrong(`what listens there does not speak HTTP${hint}`)
  switch (code) {
    case 'ECONNREFUSED':
      return waits('connection refused: nothing listens there')
    case 'ENOTFOUND':
      return waits(`unknown host ${host} (ENOTFOUND)`)
    case 'EAI_AGAIN':
      return waits(`host ${host} could not be looked up (EAI_AGAIN)`)
    case 'ECONNRESET':
    case 'UND_ERR_SOCKET':
      return waits(`it closed the connection without an answer${hint}`)
    default:
      if (/handshake has timed out/.test(message)) return waits('no answer in time')
      return waits(code === '' || message.includes(code) ? message : `${message} (${code})`)
  }
}

/**
 * Answers that a proxy or a load balancer gives before it has a way to a node: no such path, another place,
 * not this host, no upgrade, too early, too much.
 */
const passing = new Set([404, 408, 421, 425, 426, 429])

/** Of an answer that opens no link. `isNodes`: it has the form that nodes and gateways give theirs. */
export function causeOfStatus(status: number, isNodes: boolean, url: string): Unreached {
  if (isNodes) return waits(`it answers HTTP ${status}: it is starting or stopping`)
  if (status >= 500) return waits(`it answers HTTP ${status}, as a proxy does whose node is away`)
  if (passing.has(status) || (status >= 300 && status < 400)) {
    const what = 'it is another server, or a proxy that has no way to a node yet'
    return waits(`it answers HTTP ${status}: ${what}`)
  }
  const isMixedUp = status === 400 && url.startsWith('http:')
  const what = `it is no trilithon node or gateway: it answers HTTP ${status}`
  return wrong(`${what}${isMixedUp ? inTls : ''}`)
}

/** Of a handshake that one of the sides refused. */
export function causeOfRefusal(reason: string): Unreached {
  if (/^(secret|forbidden): /.test(reason)) return { kind: 'forbidden', reason }
  return /^(cluster|protocol|role|side|node): /.test(reason) ? wrong(reason) : waits(reason)
}

export function waits(reason: string): Unreached {
  return { kind: 'waits', reason }
}

export function wrong(reason: string): Unreached {
  return { kind: 'wrong', reason }
}
