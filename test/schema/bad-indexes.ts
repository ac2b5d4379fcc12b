/** Bad indexes, on a table that has everything an index can meet. See `bad-schemas.ts`. */
import { t } from '../../schema/property.ts'
import { desc, table, type Table } from '../../schema/table.ts'
import { below, User, wide, wideText, type BadSchema } from './bad-schemas.ts'

const M = table('M', {
  id: t.int64(),
  n: t.sequence(),
  name: t.string(),
  tag: t.string().repeated(),
  word: t.string().repeated(),
  note: t.json().optional(),
  exif: t.message({ camera: t.string(), lens: t.string().repeated() }).optional(),
  face: t.message({ x: t.double(), mark: t.string().repeated() }).repeated(),
})
  .key('id', 'n')
  .in(User)
const messageText = `CREATE TABLE M { required int64 id; required sequence n; required string name;
  repeated string tag; repeated string word; optional json note;
  optional message exif { required string camera; repeated string lens; }
  repeated message face { required double x; repeated string mark; }
} PRIMARY KEY(id, n), ${below};`

/** An index on `M`. */
function on(index: string, build: () => Table | readonly Table[], problem: string): BadSchema {
  return {
    text: `${messageText} ${index}`,
    tables: () => [build()].flat(),
    problem: `index I: ${problem}`,
  }
}

export const indexes: Readonly<Record<string, BadSchema>> = {
  'an index on no table': {
    text: 'CREATE LOCAL INDEX I ON Usr(name);',
    problem: 'index I: is ON Usr, which is not a table; did you mean User?',
  },
  'an index that leaves out what is never absent': on(
    'CREATE LOCAL INDEX I ON M(name, tag) WHERE PRESENT;',
    () => M.localIndex('I', ['name', 'tag'], { wherePresent: true }),
    'is WHERE PRESENT, and every row has all that it is over; leave it out',
  ),
  'an index over nothing': on(
    'CREATE LOCAL INDEX I ON M();',
    () => M.localIndex('I', []),
    'is over nothing',
  ),
  'an index over what is not there': on(
    'CREATE LOCAL INDEX I ON M(nmae);',
    // @ts-expect-error -- no such property
    () => M.localIndex('I', ['nmae']),
    'nmae is not a property of M; did you mean name?',
  ),
  'an index over a field that is not there': on(
    'CREATE LOCAL INDEX I ON M(exif.camra);',
    // @ts-expect-error -- no such field
    () => M.localIndex('I', ['exif.camra']),
    'camra is not a field of M.exif; did you mean camera?',
  ),
  'an index into what is no message': on(
    'CREATE LOCAL INDEX I ON M(name.first);',
    // @ts-expect-error -- a string
    () => M.localIndex('I', ['name.first']),
    'name.first leads into name, which is string and not a message',
  ),
  'an index over json': on(
    'CREATE LOCAL INDEX I ON M(note);',
    // @ts-expect-error -- json
    () => M.localIndex('I', ['note']),
    'note is json, which has no order; index a property of another type of M',
  ),
  'an index over a message': on(
    'CREATE LOCAL INDEX I ON M(exif);',
    // @ts-expect-error -- a message
    () => M.localIndex('I', ['exif']),
    'exif is a message; index its fields, such as exif.camera',
  ),
  'an index over two lists': on(
    'CREATE LOCAL INDEX I ON M(tag, exif.lens);',
    () => M.localIndex('I', ['tag', 'exif.lens']),
    'tag and exif.lens are both repeated, so each pair of elements would be an entry; make an index for each',
  ),
  'an index over a list in a list': on(
    'CREATE LOCAL INDEX I ON M(face.mark);',
    () => M.localIndex('I', ['face.mark']),
    'face.mark is a list inside a list; an index goes over one list',
  ),
  'an index over one thing twice': on(
    'CREATE LOCAL INDEX I ON M(name, name DESC);',
    () => M.localIndex('I', ['name', desc('name')]),
    'name is in it twice',
  ),
  'an index over a sequence in descending order': on(
    'CREATE GLOBAL INDEX I ON M(n DESC);',
    () => M.globalIndex('I', [desc('n')]),
    'sequence n is DESC, and numbers are given in ascending order; leave DESC out and scan in reverse',
  ),
  'a local index that turns the group key around': on(
    'CREATE LOCAL INDEX I ON M(id DESC, name);',
    () => M.localIndex('I', [desc('id'), 'name']),
    'id is DESC, and it is the same in all of a group; leave DESC out',
  ),
  'storing what is not there': on(
    'CREATE LOCAL INDEX I ON M(name) STORING (taag);',
    // @ts-expect-error -- no such property
    () => M.localIndex('I', ['name'], { storing: ['taag'] }),
    'taag is not a property of M; did you mean tag?',
  ),
  'storing a part of the key': on(
    'CREATE LOCAL INDEX I ON M(name) STORING (id);',
    () => M.localIndex('I', ['name'], { storing: ['id'] }),
    'STORING id stores what the entry has already; leave it out',
  ),
  'storing twice': on(
    'CREATE LOCAL INDEX I ON M(name) STORING (tag, tag);',
    () => M.localIndex('I', ['name'], { storing: ['tag', 'tag'] }),
    'STORING tag is there twice',
  ),
  'storing a field of what is stored whole': on(
    'CREATE LOCAL INDEX I ON M(name) STORING (exif, exif.camera);',
    () => M.localIndex('I', ['name'], { storing: ['exif', 'exif.camera'] }),
    'STORING exif.camera is a part of exif, which is stored whole',
  ),
  'storing a field of the elements of a list': on(
    'CREATE LOCAL INDEX I ON M(name) STORING (face.x);',
    () => M.localIndex('I', ['name'], { storing: ['face.x'] }),
    'STORING face.x is inside the list face; store face whole',
  ),
  'no shards': on(
    'CREATE GLOBAL INDEX I ON M(name) SHARDS 0;',
    () => M.globalIndex('I', ['name'], { shards: 0 }),
    'SHARDS 0 is not a whole number from 1 to 4096',
  ),
  'shards by what it is not over': on(
    'CREATE GLOBAL INDEX I ON M(name) SHARD BY tag;',
    // @ts-expect-error -- not a part
    () => M.globalIndex('I', ['name'], { shardBy: 'tag' }),
    'SHARD BY tag is not one of what it is over; there is name',
  ),
  'more spread than shards': on(
    'CREATE GLOBAL INDEX I ON M(name) SHARDS 4 SPREAD 5;',
    () => M.globalIndex('I', ['name'], { shards: 4, spread: 5 }),
    'SPREAD 5 is more than its SHARDS 4',
  ),
  'unique and spread': on(
    'CREATE UNIQUE GLOBAL INDEX I ON M(name) SPREAD 2;',
    () => M.globalIndex('I', ['name'], { unique: true, spread: 2 }),
    'is UNIQUE and has SPREAD; one group has to see all entries of a value to know that it is the only one',
  ),
  'shards of a local index': on(
    'CREATE LOCAL INDEX I ON M(name) SHARDS 4;',
    // @ts-expect-error -- of global ones
    () => M.localIndex('I', ['name'], { shards: 4 }),
    'SHARDS is of GLOBAL indexes; leave it out',
  ),
  'a table for a local index': {
    text: `${messageText} CREATE LOCAL INDEX I ON M(name) IN TABLE User;`,
    problem: 'index I: IN TABLE is of INLINE indexes; leave it out',
  },
  'an inline index into nothing': {
    text: `${messageText} CREATE INLINE INDEX I ON M(id, name);`,
    problem: 'index I: is INLINE and does not say into which table; add IN TABLE and its name',
  },
  'an inline index that is unique': on(
    'CREATE UNIQUE INLINE INDEX I ON M(id, name) IN TABLE User;',
    // @ts-expect-error -- not unique
    () => M.inlineIndex('I', User, ['id', 'name'], { unique: true }),
    'is INLINE and UNIQUE; make a UNIQUE LOCAL INDEX beside it',
  ),
  'an inline index into another kind of group': on(
    `CREATE INLINE INDEX I ON M(id, name) IN TABLE Wide; ${wideText}`,
    () => [M.inlineIndex('I', wide, ['id', 'name']), wide],
    'rows of M and of Wide are never of one group; their roots are User and Wide',
  ),
  'an inline index that does not begin with the key of its table': on(
    'CREATE INLINE INDEX I ON M(name) IN TABLE User;',
    () => M.inlineIndex('I', User, ['name']),
    'its first parts do not name a row of User; begin with (int64 id), which fits the key (int64 id)',
  ),
  'an inline index that turns the key of its table around': on(
    'CREATE INLINE INDEX I ON M(id DESC, name) IN TABLE User;',
    () => M.inlineIndex('I', User, [desc('id'), 'name']),
    'id is DESC, and it is the same in all entries of a row of User; leave DESC out',
  ),
  'an inline index of a property’s name': {
    text: `${messageText} CREATE INLINE INDEX name ON M(id, tag) IN TABLE User;`,
    tables: () => [M.inlineIndex('name', User, ['id', 'tag'])],
    problem: 'index name: User has a property of that name; its entries appear as one',
  },
}
