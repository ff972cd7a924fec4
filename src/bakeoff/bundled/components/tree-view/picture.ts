export default {
  label: 'Files',
  open: ['src'],
  nodes: [
    { id: 'src', label: 'src', children: [{ id: 'main', label: 'main.ts' }] },
    { id: 'readme', label: 'README.md' },
  ],
};
