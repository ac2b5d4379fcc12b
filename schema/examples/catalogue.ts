/**
 * The schema of a museum's catalogue: artists, each with works, found by year and by subject. As
 * text: catalogue.ddl. Property names are those of the catalogue's own files.
 */
import { defineSchema } from '../define.ts'
import { t } from '../property.ts'
import { table } from '../table.ts'

export const Artist = table('Artist', {
  id: t.integer(),
  fc: t.string(),
  mda: t.string(),
  gender: t.string().optional(),
  date: t.string().optional(),
  birthYear: t.int32().optional(),
  birth: t.json().optional(),
  death: t.json().optional(),
  movements: t.message({ id: t.integer(), name: t.string() }).repeated(),
  totalWorks: t.int32(),
  url: t.string(),
})
  .key('id')
  .root()

export const Artwork = table('Artwork', {
  artist_id: t.integer(),
  id: t.integer(),
  acno: t.string(),
  title: t.string(),
  dateText: t.string(),
  medium: t.string().optional(),
  classification: t.string().optional(),
  acquisitionYear: t.int32().optional(),
  dimensions: t.string().optional(),
  width: t.string().optional(),
  height: t.string().optional(),
  units: t.string().optional(),
  thumbnailUrl: t.string().optional(),
  contributors: t
    .message({ id: t.integer(), role: t.string(), displayOrder: t.int32() })
    .repeated(),
  subjects: t.message({ id: t.integer(), name: t.string() }).repeated(),
})
  .key('artist_id', 'id')
  .in(Artist)
  .localIndex('ArtworksByYear', ['artist_id', 'acquisitionYear'])
  .localIndex('ArtworksBySubject', ['artist_id', 'subjects.name'], { storing: ['title'] })

export const catalogue = defineSchema('Catalogue', [Artist, Artwork])
