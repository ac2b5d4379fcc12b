/**
 * Whether a certificate and a key are any, are of each other, and will do for a handshake: found before
 * anything listens, since a listener with the wrong ones takes connections and can serve none.
 */
import { createPrivateKey, X509Certificate } from 'node:crypto'
import { isIP } from 'node:net'
import { createSecureContext } from 'node:tls'

export interface TlsFiles {
  readonly cert: Buffer
  readonly key: Buffer
}

export interface TlsPaths {
  readonly certFile: string
  readonly keyFile: string
}

/** Something about one of the two files. */
export interface TlsFinding {
  readonly setting: 'tls.cert_file' | 'tls.key_file'
  readonly text: string
}

/** The first reason why no handshake can succeed, or undefined. */
export function tlsProblem(
  { cert, key }: TlsFiles,
  { certFile, keyFile }: TlsPaths,
): TlsFinding | undefined {
  const blameCert = (text: string): TlsFinding => ({ setting: 'tls.cert_file', text })
  const blameKey = (text: string): TlsFinding => ({ setting: 'tls.key_file', text })
  const [first, ...issuers] = splitPems(cert)
  if (first === undefined) {
    const text = `${certFile} holds no certificate: a text with "-----BEGIN CERTIFICATE-----" is wanted (PEM)`
    return blameCert(hasKey(cert) ? `${text}, and this is a private key` : text)
  }
  const own = attempt(() => new X509Certificate(first))
  if (!own.ok)
    return blameCert(`the first certificate in ${certFile} cannot be read: ${own.reason}`)
  if (!hasKey(key)) {
    const text = `${keyFile} holds no private key: a text with "-----BEGIN PRIVATE KEY-----" is wanted (PEM)`
    return blameKey(splitPems(key).length > 0 ? `${text}, and this is a certificate` : text)
  }
  if (isEncrypted(key)) {
    return blameKey(
      `the key in ${keyFile} is encrypted, and this process cannot ask for its passphrase: write it without one (openssl pkey -in … -out …), for this user alone to read`,
    )
  }
  const secret = attempt(() => createPrivateKey(key))
  if (!secret.ok) return blameKey(`the key in ${keyFile} cannot be read: ${secret.reason}`)
  const isOf = (pem: string): boolean =>
    attempt(() => new X509Certificate(pem).checkPrivateKey(secret.value)).value === true
  if (!isOf(first)) {
    return issuers.some(isOf)
      ? blameCert(`the certificate of the key in ${keyFile} must stand first in ${certFile}`)
      : blameKey(`the key in ${keyFile} is not that of the certificate in ${certFile}`)
  }
  const context = attempt(() => createSecureContext({ cert, key }))
  if (context.ok) return undefined
  return blameCert(`${certFile} with ${keyFile} will not do for TLS: ${context.reason}`)
}

/**
 * Faults that others will refuse, in files that have none by themselves: dates, and a certificate for none of
 * `names`.
 */
export function tlsWarnings(
  { cert }: TlsFiles,
  { certFile }: TlsPaths,
  names: readonly string[],
  nowMs: number,
): readonly TlsFinding[] {
  const warnings: string[] = []
  const certificates = splitPems(cert).flatMap((pem) => {
    const read = attempt(() => new X509Certificate(pem))
    return read.ok ? [read.value] : []
  })
  for (const [nth, { validFrom, validTo }] of certificates.entries()) {
    const which = nth === 0 ? 'the certificate' : `certificate ${nth + 1}`
    if (Date.parse(validTo) < nowMs) warnings.push(`${which} in ${certFile} expired on ${validTo}`)
    if (Date.parse(validFrom) > nowMs) {
      warnings.push(`${which} in ${certFile} is not valid before ${validFrom}`)
    }
  }
  const [own] = certificates
  if (own !== undefined && names.length > 0 && !names.some((name) => covers(own, name))) {
    const has = own.subjectAltName ?? own.subject.replaceAll('\n', ', ')
    warnings.push(
      `the certificate in ${certFile} is not for ${names.join(', ')} (it is for ${has}): a client that checks it ends the connection`,
    )
  }
  return warnings.map((text) => ({ setting: 'tls.cert_file', text }))
}

/**
 * The problem with the further authorities that Node.js is configured to trust; without this check it passes
 * over them.
 */
export function authoritiesFault(file: string, bytes: Buffer): string | undefined {
  const pems = splitPems(bytes)
  if (pems.length === 0) return `${file} holds no certificate`
  const bad = pems.findIndex((pem) => !attempt(() => new X509Certificate(pem)).ok)
  return bad < 0 ? undefined : `certificate ${bad + 1} in ${file} cannot be read`
}

function covers(certificate: X509Certificate, name: string): boolean {
  const found = isIP(name) === 0 ? certificate.checkHost(name) : certificate.checkIP(name)
  return found !== undefined
}

const certPattern =
  /-----BEGIN (?:X509 |TRUSTED )?CERTIFICATE-----[^-]*-----END (?:X509 |TRUSTED )?CERTIFICATE-----/g

function splitPems(bytes: Buffer): readonly string[] {
  return bytes.toString('latin1').match(certPattern) ?? []
}

function hasKey(bytes: Buffer): boolean {
  return /-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY-----/.test(bytes.toString('latin1'))
}

function isEncrypted(bytes: Buffer): boolean {
  return /BEGIN ENCRYPTED PRIVATE KEY|^Proc-Type:.*ENCRYPTED/m.test(bytes.toString('latin1'))
}

type Attempt<T> =
  | { readonly ok: true; readonly value: T }
  | { readonly ok: false; readonly reason: string; readonly value?: undefined }

function attempt<T>(work: () => T): Attempt<T> {
  try {
    return { ok: true, value: work() }
  } catch (error) {
    if (!(error instanceof Error)) return { ok: false, reason: String(error) }
    // OpenSSL's own sentence, without its numbers.
    const reason = 'reason' in error && typeof error.reason === 'string' ? error.reason : undefined
    return { ok: false, reason: reason ?? error.message }
  }
}
