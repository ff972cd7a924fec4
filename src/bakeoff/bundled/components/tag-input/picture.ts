export default { label: 'Tags', name: 'tags', tags: ['soup', 'vegan'] };
