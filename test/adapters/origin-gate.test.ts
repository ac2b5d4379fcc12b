/** Which requests are taken by what browsers say of the page that sends them, and of the name it asks. */
import { expect, test } from 'vitest'
import { originGate, type Asked } from '../../src/adapters/origin-gate.ts'

const local: Asked = {
  ...{ method: 'PUT', host: '127.0.0.1:4700', origin: undefined, site: undefined, mode: undefined },
  ...{ localAddress: '127.0.0.1', localPort: 4700 },
}
const far: Asked = { ...local, localAddress: '::ffff:10.1.2.3', host: 'db.example:4700' }

const gate = originGate({
  ...{ isSecure: false, hosts: ['0.0.0.0', 'DB.example', 'fd00::5'] },
  origins: ['https://app.example'],
})

test.each<readonly [string, Asked]>([
  ['a program on loopback', local],
  ['by the name localhost, with a dot, in capitals', { ...local, host: 'LocalHost.:4700' }],
  ['over IPv6', { ...local, host: '[::1]:4700', localAddress: '::1' }],
  ['without a port', { ...local, host: '127.0.0.1' }],
  ['of HTTP/1.0, which names no host', { ...local, host: undefined }],
  ['by a name that leads here', far],
  ['by an address that leads here', { ...far, host: '[FD00:0:0::0005]:4700' }],
  ['by the address that was connected to', { ...far, host: '10.1.2.3:4700' }],
  ['from the very page', { ...local, origin: 'http://127.0.0.1:4700' }],
  ['from the very page, by name', { ...far, origin: 'http://db.example:4700' }],
  ['from a loopback name on this port', { ...local, origin: 'http://localhost:4700' }],
  ['from the page of an allowed origin', { ...far, origin: 'https://app.example' }],
  ['a link that was followed', { ...local, method: 'GET', site: 'cross-site', mode: 'navigate' }],
  ['a fetch of the very page', { ...local, method: 'GET', site: 'same-origin', mode: 'cors' }],
])('a request is taken: %s', (_, asked) => {
  expect(gate(asked)).toBeUndefined()
})

test.each<readonly [string, Asked, 'host' | 'origin', RegExp]>([
  [
    'a page of another origin',
    { ...local, origin: 'https://evil.example' },
    'origin',
    /evil\.example.*allowed_origins/,
  ],
  ['a page without an origin of its own', { ...local, origin: 'null' }, 'origin', /null/],
  ['a page on another port', { ...local, origin: 'http://localhost:3000' }, 'origin', /3000/],
  [
    'a page of the allowed name over HTTP',
    { ...far, origin: 'http://app.example' },
    'origin',
    /app/,
  ],
  [
    'a page of this name by TLS, which is not spoken here',
    { ...far, origin: 'https://db.example:4700' },
    'origin',
    /db/,
  ],
  [
    'loopback of somebody else’s machine',
    { ...far, origin: 'http://localhost:4700' },
    'origin',
    /localhost/,
  ],
  [
    'a picture in a page',
    { ...local, method: 'GET', site: 'cross-site', mode: 'no-cors' },
    'origin',
    /another site/,
  ],
  [
    'a form of another page',
    { ...local, method: 'POST', site: 'same-site', mode: 'navigate' },
    'origin',
    /another site/,
  ],
  [
    'a name that somebody led here',
    { ...local, host: 'evil.example:4700' },
    'host',
    /evil\.example.*allowed_hosts/,
  ],
  [
    'the same with its origin',
    { ...local, host: 'evil.example:4700', origin: 'http://evil.example:4700' },
    'host',
    /evil/,
  ],
  [
    'a name that only begins as one of ours',
    { ...local, host: '127.0.0.1.evil.example' },
    'host',
    /evil/,
  ],
  [
    'a name that only ends as one of ours',
    { ...local, host: 'x.localhost' },
    'host',
    /x\.localhost/,
  ],
  ['an address of somebody else', { ...local, host: '10.9.9.9:4700' }, 'host', /10\.9\.9\.9/],
  ['an address in another notation', { ...local, host: '2130706433:4700' }, 'host', /2130706433/],
  ['no name at all', { ...local, host: '' }, 'host', /""/],
  ['a name with a user', { ...local, host: 'localhost@evil.example' }, 'host', /evil/],
  [
    'what is listened on when that is everything',
    { ...far, host: '0.0.0.1' },
    'host',
    /0\.0\.0\.1/,
  ],
])('a request is refused, with what to set: %s', (_, asked, why, text) => {
  const refusal = gate(asked)
  expect(refusal?.why).toBe(why)
  expect(refusal?.text).toMatch(text)
})

test('where TLS is spoken, its pages are those of https', () => {
  const secure = originGate({ isSecure: true, hosts: ['db.example'], origins: [] })
  const asked = { ...far, host: 'db.example' }
  expect(secure({ ...asked, origin: 'https://db.example' })).toBeUndefined()
  expect(secure({ ...asked, origin: 'http://db.example' })?.why).toBe('origin')
})
