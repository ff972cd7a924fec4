export default { label: 'Upload', value: 40 };
